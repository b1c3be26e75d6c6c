//! How the tools of the active profile are called: a hint names only what the model has.

use outlast_job::Handle;
use outlast_protocol::{Call, Hint};

use crate::options::Profile;

/// The names of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub Profile);

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

    /// Whether processes go by their pids here.
    pub(crate) fn says_pid(self) -> bool {
        self.0 == Profile::Gemini
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

    /// The call that reads on from an offset.
    #[must_use]
    pub fn read_from(self, job: Handle, from: u64) -> String {
        self.reads(&job.to_string(), &format!(", offset={from}"))
    }

    /// The call that reads what is new.
    #[must_use]
    pub fn read_new(self, job: &str) -> String {
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
    #[must_use]
    pub fn type_into(self, job: &str) -> String {
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Claude => {
                format!("send_input(handle={}, input=...)", value(job))
            }
            // A number, there.
            Profile::Codex => format!("write_stdin(session_id={job}, chars=\"...\\n\")"),
        }
    }

    /// The call that reads the screen.
    #[must_use]
    pub fn screen(self, job: &str) -> String {
        format!("read_shell(handle={})", value(job))
    }

    /// The call that ends a job.
    pub(crate) fn end(self, job: &str) -> String {
        let job = value(job);
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Codex => format!("kill(handle={job})"),
            Profile::Claude => format!("KillShell(shell_id={job})"),
        }
    }

    /// Our own words about the tools, for this profile. `@NAME` names a tool as the plain profile calls it.
    pub(crate) fn described(self, text: &str) -> String {
        let mut parts = text.split('@');
        let mut said = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(part.len());
            said.push_str(self.tool(&part[..end]));
            said.push_str(&part[end..]);
        }
        match self.0 {
            Profile::Plain | Profile::Gemini | Profile::Claude => said,
            Profile::Codex => said.replace("write_stdin with Ctrl-C", "write_stdin with \\u0003"),
        }
    }

    /// What this profile calls a tool of the plain one.
    fn tool(self, plain: &str) -> &str {
        match (self.0, plain) {
            (_, "run_shell_command") => self.run(),
            (Profile::Codex, "send_input") => "write_stdin",
            (Profile::Claude, "read_output") => "BashOutput",
            (Profile::Claude, "kill") => "KillShell",
            (Profile::Plain | Profile::Gemini | Profile::Codex | Profile::Claude, same) => same,
        }
    }

    /// A hint in calls that the model has. What only a person can do is asked of the user.
    pub(crate) fn hint(self, hint: &Hint) -> String {
        hint.worded(|call| self.call(call))
    }

    fn call(self, call: &Call) -> String {
        let command = if self.0 == Profile::Codex { "cmd" } else { "command" };
        match call {
            Call::Read(job) | Call::Follow(job) => self.read_new(job),
            Call::Screen(job) => self.screen(job),
            Call::Send(job) => self.type_into(job),
            Call::Kill(job) => self.end(job),
            Call::AttachShared(job) => format!("ask the user to attach to job {job} with a shared keyboard"),
            Call::Watches(job) => format!("ask the user for the watches of job {job}"),
            Call::AllJobs => "jobs(all=true)".into(),
            Call::RunExample(example) => format!("{command}={example:?}"),
            Call::RunForInput => self.run().into(),
            Call::RunOnPipes => match self.0 {
                Profile::Plain | Profile::Gemini => "pty=false".into(),
                Profile::Codex => "tty=false".into(),
                Profile::Claude => "give it as a file: COMMAND < FILE".into(),
            },
            Call::RunInFolder => match self.0 {
                Profile::Plain | Profile::Gemini => "dir_path".into(),
                Profile::Codex => "workdir".into(),
                Profile::Claude => "cd in the command".into(),
            },
            Call::Doctor => "ask the user to check what this machine can do".into(),
            Call::ExplainPolicy => "the user can have the policy explained".into(),
        }
    }

    /// The tool that runs a command.
    fn run(self) -> &'static str {
        match self.0 {
            Profile::Plain | Profile::Gemini => "run_shell_command",
            Profile::Codex => "exec_command",
            Profile::Claude => "Bash",
        }
    }
}

/// A handle as the schemas declare it: as text. Some clients refuse a call with a number in its place.
fn value(job: &str) -> String {
    format!("{job:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_only_what_the_profile_has() {
        for profile in [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude] {
            let tools = crate::tools::definitions(profile);
            for call in Call::samples() {
                let said = Words(profile).hint(&Hint::call("next: ", call.clone()));
                assert!(!said.contains("outlast "), "{profile:?}: {said}");
                assert!(!said.contains("--"), "{profile:?}: {said}");
                if let Some((tool, _)) = said.trim_start_matches("next: ").split_once('(') {
                    assert!(
                        tools.iter().any(|known| known.name == tool),
                        "{profile:?} has no {tool}: {said}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_hint_is_worded_for_the_profile() {
        let hint = Hint::call("see how: ", Call::Read("3".into()))
            .and(", or end it: ")
            .then(Call::Kill("web".into()));
        let said = |profile| Words(profile).hint(&hint);
        assert_eq!(
            said(Profile::Plain),
            "see how: read_output(handle=\"3\"), or end it: kill(handle=\"web\")"
        );
        assert!(
            said(Profile::Claude).starts_with("see how: BashOutput(bash_id=\"3\"), or end it: KillShell")
        );
    }
}
