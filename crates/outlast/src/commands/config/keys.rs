//! Every setting once: its name, its default, and what it is. The page of settings is tested against this list.

/// A setting.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// As a person writes it; empty where there is none.
    pub(super) default: &'static str,
    pub(super) about: &'static str,
    /// Its value is text: a time or a size, too.
    pub(super) is_text: bool,
}

const fn text(name: &'static str, default: &'static str, about: &'static str) -> Key {
    Key { name, default, about, is_text: true }
}

const fn other(name: &'static str, default: &'static str, about: &'static str) -> Key {
    Key { name, default, about, is_text: false }
}

pub(super) const KEYS: &[Key] = &[
    text("retention.age", "7d", "finished jobs are kept this long"),
    other("retention.jobs", "1000", "at most this many"),
    text("retention.bytes", "5GiB", "and together this large"),
    text("retention.young", "1d", "nothing that ended more recently is removed to make room"),
    text("retention.unread", "30d", "and nothing that nobody has read, for this long"),
    text("log.cap", "1GiB", "how much of a job's output is kept"),
    text("kill.grace", "200ms", "how long a job may take to end by itself: scripts and agents"),
    text("kill.grace_at_terminal", "10s", "the same, for a person at a terminal"),
    text("watchdog.after", "45s", "silence after which a line that looks like a question counts as one"),
    other("watchdog.prompts", "[]", "patterns that are questions, too"),
    other("watchdog.not_prompts", "[]", "patterns that only look like questions"),
    other("secrets.env", "[]", "variables whose values are hidden, besides those with telling names"),
    other("secrets.not_env", "[]", "variables whose values are not hidden"),
    other("secrets.patterns", "[]", "texts that are hidden wherever they are"),
    other("secrets.redact_log", "false", "hide secrets in the log itself, too"),
    text("agents.sandbox.network", "off", "network of agents' jobs in their sandbox: off, loopback, on"),
    other("agents.sandbox.roots", "[]", "where agents' jobs work; else the server's folder"),
    other("agents.sandbox.writable", "[]", "folders that they may write to, too"),
    other("agents.sandbox.readable", "[]", "folders that they may read, too"),
    text("agents.sandbox.by", "kernel", "who makes the sandbox: kernel or bwrap"),
    other("agents.sandbox.unix_sockets", "false", "whether they may reach sockets of other programs"),
    text("agents.limits.memory", "", "memory of an agent's job"),
    other("agents.limits.processes", "", "processes of an agent's job"),
    other("agents.limits.cpu", "", "processors of an agent's job, as in 1.5"),
    text("agents.limits.cpu_time", "", "CPU time of an agent's job"),
];

#[cfg(test)]
mod tests {
    use outlast_job::settings::Settings;

    use super::*;

    /// A table of `[agents]` says that there is a sandbox: its defaults are those of the table.
    #[test]
    fn every_default_is_the_one_in_force() {
        let mut file = String::new();
        for key in KEYS.iter().filter(|key| !key.default.is_empty() && !key.name.starts_with("agents.")) {
            let value = if key.is_text { format!("{:?}", key.default) } else { key.default.to_owned() };
            file.push_str(&format!("{} = {value}\n", key.name));
        }
        assert_eq!(Settings::parse(&file).unwrap(), Settings::default());
        let sandbox = |file: &str| Settings::parse(file).unwrap().agents_sandbox.unwrap();
        for key in KEYS.iter().filter(|key| key.name.starts_with("agents.sandbox")) {
            let value = if key.is_text { format!("{:?}", key.default) } else { key.default.to_owned() };
            assert_eq!(
                sandbox(&format!("{} = {value}\n", key.name)),
                sandbox("[agents.sandbox]\n"),
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn the_page_of_settings_has_every_key_with_its_default() {
        const PAGE: &str = include_str!("../../../../../docs/guide/settings.md");
        for key in KEYS {
            let last = key.name.rsplit('.').next().unwrap();
            let row = format!(
                "| `{}` | {} |",
                key.name,
                if key.default.is_empty() { "none".into() } else { format!("`{}`", key.default) }
            );
            assert!(PAGE.contains(&row), "{last}: {row}");
        }
    }
}
