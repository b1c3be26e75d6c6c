//! How the tools of the active profile are called: a hint names only what the model has.

use outlast_job::Handle;

use crate::options::Profile;

/// The names of a profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words(pub(crate) Profile);

impl Words {
    /// What the server says of itself.
    pub(crate) fn instructions(self) -> String {
        let (run, go_on) = match self.0 {
            Profile::Plain | Profile::Gemini => {
                ("run_shell_command", "send_input, wait_for, read_output and kill go on with its handle")
            }
            Profile::Codex => (
                "exec_command",
                "write_stdin, wait_for, read_output and kill go on with its session ID, which is its handle",
            ),
            Profile::Claude => (
                "Bash",
                "send_input, wait_for, BashOutput and KillShell go on with its id, which is its handle",
            ),
        };
        format!(
            "Commands run as jobs that outlast the call, the conversation and this server. {run} starts one and comes \
             back early with a reason; {go_on}. Call jobs() when you have lost track of what runs."
        )
    }

    /// The call that reads a part of the output.
    pub(crate) fn read(self, job: Handle, from: u64, to: u64) -> String {
        self.reads(&job.to_string(), &format!(", offset={from}, until={to}"))
    }

    /// The call that reads a part of what came on stderr.
    pub(crate) fn read_errors(self, job: Handle, from: u64, to: u64) -> String {
        self.reads(&job.to_string(), &format!(", offset={from}, until={to}, stderr=true"))
    }

    /// The call that reads on, with escapes shown.
    pub(crate) fn read_raw(self, job: Handle, from: u64) -> String {
        self.reads(&job.to_string(), &format!(", offset={from}, raw=true"))
    }

    /// The call that reads what is new.
    pub(crate) fn read_new(self, job: &str) -> String {
        self.reads(job, "")
    }

    fn reads(self, job: &str, part: &str) -> String {
        let job = value(job);
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Codex => format!("read_output(handle={job}{part})"),
            Profile::Claude => format!("BashOutput(bash_id={job}{part})"),
        }
    }

    /// The call that types.
    pub(crate) fn type_into(self, job: &str) -> String {
        let job = value(job);
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Claude => {
                format!("send_input(handle={job}, input=...)")
            }
            Profile::Codex => format!("write_stdin(session_id={job}, chars=\"...\\n\")"),
        }
    }

    /// The call that ends a job.
    pub(crate) fn end(self, job: &str) -> String {
        let job = value(job);
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Codex => format!("kill(handle={job})"),
            Profile::Claude => format!("KillShell(shell_id={job})"),
        }
    }

    /// What can be done with a job that goes on.
    pub(crate) fn go_on(self, job: Handle) -> String {
        let job = job.to_string();
        let (read, end) = (self.read_new(&job), self.end(&job));
        format!("it goes on in the background: wait_for(handle={job}), {read} (what is new) or {end}")
    }

    /// Our own words about the seven tools, for a profile that calls some of them otherwise.
    pub(crate) fn described(self, text: &str) -> String {
        match self.0 {
            Profile::Plain | Profile::Gemini => text.to_owned(),
            Profile::Codex => text
                .replace("send_input with Ctrl-C", "write_stdin with \\u0003")
                .replace("send_input", "write_stdin")
                .replace("run_shell_command", "exec_command"),
            Profile::Claude => text.replace("read_output", "BashOutput").replace("run_shell_command", "Bash"),
        }
    }

    /// The library speaks of the command line; a model has tools. What only a person can do stays.
    pub(crate) fn translated(self, text: &str) -> String {
        let (folder, pipes) = match self.0 {
            Profile::Plain | Profile::Gemini => ("dir_path", "pty=false"),
            Profile::Codex => ("workdir", "tty=false"),
            Profile::Claude => ("cd in the command", "give it as a file: COMMAND < FILE"),
        };
        let text = text
            .replace("--cwd DIR", folder)
            .replace("--cwd", folder)
            .replace("outlast run --pipe", pipes)
            .replace("(--pipe)", &format!("({pipes})"));
        let (mut said, mut rest) = (String::new(), text.as_str());
        while let Some((before, after)) = rest.split_once("outlast ") {
            said.push_str(before);
            rest = match self.call(after) {
                Some((call, rest)) => {
                    said.push_str(&call);
                    rest
                }
                None => {
                    said.push_str("outlast ");
                    after
                }
            };
        }
        said.push_str(rest);
        said
    }

    /// The call for a command line, without its first word, and what comes after it.
    fn call(self, line: &str) -> Option<(String, &str)> {
        if let Some(rest) = line.strip_prefix("run 'echo hello'") {
            let name = if self.0 == Profile::Codex { "cmd" } else { "command" };
            return Some((format!("{name}=\"echo hello\""), rest));
        }
        if let Some(rest) = line.strip_prefix("jobs --all") {
            return Some(("jobs(all=true)".into(), rest));
        }
        let (verb, rest) = line.split_once(' ')?;
        let rest = rest.strip_prefix("-f ").unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).unwrap_or(rest.len());
        let job = rest[..end].trim_end_matches('.');
        let call = match verb {
            _ if job.is_empty() => return None,
            "read" | "logs" => self.read_new(job),
            "screen" => format!("read_shell(handle={})", value(job)),
            "kill" => self.end(job),
            "send" => self.type_into(job),
            _ => return None,
        };
        Some((call, &rest[job.len()..]))
    }
}

/// A handle as a model writes it: a number, or a name.
fn value(job: &str) -> String {
    if job.bytes().all(|byte| byte.is_ascii_digit()) { job.to_owned() } else { format!("{job:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_tools_of_the_profile() {
        let hint =
            "see how: outlast read 3, or: outlast jobs --all; or end it: outlast kill web, or give --cwd";
        let said = |profile| Words(profile).translated(hint);
        assert_eq!(
            said(Profile::Plain),
            "see how: read_output(handle=3), or: jobs(all=true); or end it: kill(handle=\"web\"), or give dir_path"
        );
        assert!(said(Profile::Claude).starts_with("see how: BashOutput(bash_id=3), or: jobs(all=true); "));
        assert!(said(Profile::Claude).contains("KillShell(shell_id=\"web\")"));
        assert!(said(Profile::Codex).ends_with("or give workdir"));
        assert_eq!(Words(Profile::Plain).translated("this outlast knows"), "this outlast knows");
        assert_eq!(
            Words(Profile::Plain).translated("look: outlast screen 4."),
            "look: read_shell(handle=4)."
        );
    }
}
