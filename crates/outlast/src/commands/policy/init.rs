//! `outlast policy init`: a policy and a sandbox to begin with. Both together: rules hold what is careless, the sandbox what
//! is not.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outlast_job::settings::Settings;
use outlast_job::{Failure, Kind};
use outlast_policy::{Gate, Policy};
use serde_json::json;

use crate::output::Output;

/// A policy that asks about what cannot be undone, and closes files with keys.
const POLICY: &str = "\
# What agents may do: docs/guide/policy.md. Try it: outlast policy check --explain 'git push'
default = \"allow\"

[[rule]]
decision = \"ask\"
prefix = [\"git\", \"push\"]
why = \"others see it\"

[[rule]]
decision = \"ask\"
prefix = [\"rm\", \"-rf\"]
why = \"it can't be undone\"

[[rule]]
decision = \"ask\"
prefix = [[\"npm\", \"cargo\", \"twine\", \"gem\"], [\"publish\", \"upload\", \"push\"]]
why = \"a release can't be taken back\"

[[rule]]
decision = \"deny\"
prefix = [[\"sudo\", \"doas\", \"su\"]]
";

/// Only where this machine can enforce it: a rule that it can't does not load.
const FILES: &str = "
# Closed to agents' jobs, whatever the program. A name counts in every folder.
[[rule]]
decision = \"deny\"
path = [\".env\", \".env.local\", \".netrc\", \"id_rsa\", \"id_ed25519\"]
";

/// A sandbox for every job of an agent.
const SANDBOX: &str = "\
# Every job that an agent starts works in a sandbox: docs/guide/sandbox.md
[agents.sandbox]
network = \"off\"                  # off, loopback, hosts, on
# hosts = [\"crates.io\", \"*.npmjs.org\"]   # for network = \"hosts\"
# roots = [\"~/src\"]               # where they work; else the folder that the server was started in
";

/// What came of one of the files.
enum Done {
    Written,
    /// It was there, and is left alone.
    There,
    /// Nothing is written in a dry run.
    Shown,
}

pub(super) fn init(dry_run: bool, out: &mut Output) -> Result<i32, Failure> {
    if Gate::is_in_a_job() && !dry_run {
        let said = "a process inside a job can't write its user's policy";
        return Err(Failure::new(Kind::Denied, said).hint("do it in a terminal of your own"));
    }
    let no_place = || Failure::usage("there is no folder for settings").hint("set HOME or XDG_CONFIG_HOME");
    let policy = Policy::user_file().ok_or_else(no_place)?;
    let settings = Settings::path().ok_or_else(no_place)?;
    let closes = outlast_job::sandbox::can_close_files();
    let rules = if closes.is_ok() { format!("{POLICY}{FILES}") } else { POLICY.to_owned() };
    let files = [(policy, rules), (settings, SANDBOX.to_owned())];
    let mut told = Vec::new();
    for (path, text) in &files {
        let done = write(path, text, dry_run)?;
        let word = match done {
            Done::Written => "written",
            Done::There => "there already",
            Done::Shown => "would be written",
        };
        if !out.json {
            out.line(&format!("{word}: {}", path.display()));
            // What is there may lack some of it.
            if !matches!(done, Done::Written) {
                out.line(text.trim_end());
            }
        }
        told.push(json!({ "file": path, "done": word, "text": text }));
    }
    if out.json {
        out.value(&json!({ "files": told }));
    } else if let Err(why) = closes {
        out.talk(&format!("rules about files are left out: this machine can't enforce them ({why})"));
    } else {
        out.talk("see what is in force: outlast policy check");
    }
    Ok(0)
}

fn write(path: &PathBuf, text: &str, dry_run: bool) -> Result<Done, Failure> {
    let cannot = |error| Failure::system(format!("cannot write {}", path.display()), error);
    if path.symlink_metadata().is_ok() {
        return Ok(Done::There);
    }
    if dry_run {
        return Ok(Done::Shown);
    }
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(cannot)?;
    // Never over something that came to be there in between.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(cannot)?;
    Ok(Done::Written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_writes_loads() {
        let policy = Policy::parse(Path::new("policy.toml"), &format!("{POLICY}{FILES}")).unwrap();
        assert!(policy.notes().is_empty(), "{:?}", policy.notes());
        let settings = Settings::parse(SANDBOX).unwrap();
        assert!(settings.agents_sandbox.is_some());
    }
}
