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
    text("log.sync", "end", "when it is brought to the disk: end, interval, answer, none"),
    text("kill.grace", "200ms", "how long a job may take to end by itself: scripts and agents"),
    text("kill.grace_at_terminal", "10s", "the same, for a person at a terminal"),
    text("shells.with", "bash", "which shell a person's new one is: bash, zsh, fish, dash"),
    text("shells.state", "disk", "where it is kept what a shell remembers: disk or memory"),
    other(
        "pressure.memory",
        "10",
        "a queued job waits while more percent of the time is lost to a lack of memory",
    ),
    other("pressure.io", "40", "the same, for disks"),
    text("pressure.hold", "5m", "but at most this long"),
    text("terminal.shell", "bash", "what reads the lines of `run`, for a person at a terminal"),
    text("terminal.detach_key", "Ctrl-]", "the key that leaves a job and sends it nothing; or none"),
    text("systemd.scope", "auto", "whether jobs leave the unit of systemd they were started in: auto, never"),
    text("watchdog.after", "45s", "silence after which a line that looks like a question counts as one"),
    other("watchdog.prompts", "[]", "patterns that are questions, too"),
    other("watchdog.not_prompts", "[]", "patterns that only look like questions"),
    other("secrets.values", "[]", "texts that are hidden, as they are"),
    other("secrets.env", "[]", "variables whose values are hidden, besides those with telling names"),
    other("secrets.not_env", "[]", "variables whose values are not hidden"),
    other("secrets.patterns", "[]", "texts that are hidden wherever they are"),
    other("secrets.redact_log", "false", "hide secrets in the log itself, too"),
    other("fleet.show", "false", "every list shows the jobs of the fleet, too"),
    other("agents.hosts", "[]", "the other machines that agents may use"),
    text(
        "agents.sandbox.network",
        "off",
        "network of agents' jobs in their sandbox: off, loopback, hosts, on",
    ),
    other(
        "agents.sandbox.hosts",
        "[]",
        "with network = \"hosts\": the hosts, such as \"crates.io\" or \"*.npmjs.org:443\"",
    ),
    other("agents.sandbox.roots", "[]", "where agents' jobs work; else the server's folder"),
    other("agents.sandbox.writable", "[]", "folders that they may write to, too"),
    other("agents.sandbox.readable", "[]", "folders that they may read, too"),
    text("agents.sandbox.by", "kernel", "who makes the sandbox: kernel or bwrap"),
    other("agents.sandbox.unix_sockets", "false", "whether they may reach sockets of other programs"),
    text("agents.sandbox.git", "", "repositories: read, or write for commits; agents read, people write"),
    text("agents.sandbox.protect", "", "protected names: require them closed, or off; agents require it"),
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
        for key in KEYS.iter().filter(|key| key.name.starts_with("agents.sandbox") && !key.default.is_empty())
        {
            let value = if key.is_text { format!("{:?}", key.default) } else { key.default.to_owned() };
            assert_eq!(
                sandbox(&format!("{} = {value}\n", key.name)),
                sandbox("[agents.sandbox]\n"),
                "{}",
                key.name
            );
        }
    }

    /// The reader of the file names what it knows when it meets something else.
    #[test]
    fn every_key_that_the_file_may_have_is_listed() {
        let tables = [
            "retention",
            "log",
            "kill",
            "terminal",
            "watchdog",
            "secrets",
            "agents",
            "agents.sandbox",
            "agents.limits",
        ];
        for table in tables {
            let said = Settings::parse(&format!("[{table}]\nzzz = 1\n")).unwrap_err().message;
            let fields: Vec<&str> = said.split('`').skip(3).step_by(2).collect();
            assert!(!fields.is_empty(), "{said}");
            for field in fields {
                let name = format!("{table}.{field}");
                let is_table = tables.contains(&name.as_str());
                assert!(is_table || KEYS.iter().any(|key| key.name == name), "{name} is not listed: {said}");
            }
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
