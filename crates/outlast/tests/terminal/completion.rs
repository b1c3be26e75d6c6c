//! Completion in the shells that people use: a real shell, in a real terminal, and the Tab key.

use crate::{sandbox, type_in, wait_for_screen};
use outlast_testkit::Sandbox;

/// Starts a shell that knows our completions, with `outlast` in its PATH.
fn shell(sandbox: &Sandbox, name: &str) -> u64 {
    let programs = sandbox.root().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(sandbox.program(), programs.join("outlast")).unwrap();
    let (argv, setup): (&[&str], &str) = match name {
        "bash" => (&["bash", "--norc", "-i"], "PS1='ready> '; source <(outlast completions bash)"),
        "zsh" => {
            let setup =
                "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source <(outlast completions zsh)";
            (&["zsh", "-f", "-i"], setup)
        }
        _ => (
            &["fish", "--no-config", "-i"],
            "outlast completions fish | source; function fish_prompt; echo -n 'ready> '; end",
        ),
    };
    let path = format!("PATH={}:{}", programs.display(), std::env::var("PATH").unwrap());
    let home = format!("OUTLAST_HOME={}", sandbox.home().display());
    let mut call =
        sandbox.call(["run", "-d", "--name", "shell", "--size", "100x30", "-e", &path, "-e", &home, "--"]);
    for word in argv {
        call = call.arg(word);
    }
    let job: u64 = call.run().ok().text().trim().parse().unwrap();
    sandbox.json(["wait", "shell", "--awaiting-input", "--deadline", "30s"]);
    sandbox.run(["send", "shell", setup, "--no-wait"]).ok();
    wait_for_screen(sandbox, job, |_, rows| rows.iter().any(|row| row.trim_end() == "ready>"));
    job
}

/// Types a line, presses Tab, and waits until the line is completed; then takes it back.
fn completes(sandbox: &Sandbox, job: u64, typed: &str, wanted: &str) {
    type_in(sandbox, job, &format!("{typed}\t"));
    wait_for_screen(sandbox, job, |_, rows| {
        rows.iter().any(|row| row.trim_end().starts_with(&format!("ready> {wanted}")))
    });
    crate::press(sandbox, job, &["Ctrl-C"]);
    wait_for_screen(sandbox, job, |shot, rows| {
        let row = usize::try_from(shot["cursor"]["row"].as_u64().unwrap()).unwrap();
        rows[row].trim_end() == "ready>"
    });
}

fn names_of_jobs_keys_and_signals_are_completed(name: &str) {
    if !outlast_testkit::has(name) {
        outlast_testkit::left_out(&format!("{name} is not installed"), &format!("apt-get install {name}"));
        return;
    }
    let sandbox = sandbox();
    sandbox.start(["--name", "webserver", "cat"]);
    sandbox.run(["run", "--name", "finished-build", "true"]).ok();
    let job = shell(&sandbox, name);
    completes(&sandbox, job, "outlast kill we", "outlast kill webserver");
    completes(&sandbox, job, "outlast show fin", "outlast show finished-build");
    completes(&sandbox, job, "outlast rer", "outlast rerun");
    completes(&sandbox, job, "outlast send webserver --key PageD", "outlast send webserver --key PageDown");
    completes(&sandbox, job, "outlast kill webserver --signal WIN", "outlast kill webserver --signal WINCH");
    completes(&sandbox, job, "outlast jobs --status comp", "outlast jobs --status completed");
    sandbox.run(["host", "add", "gpu-one", "ssh:gpu1"]).ok();
    completes(&sandbox, job, "outlast jobs --on gp", "outlast jobs --on gpu-one");
    completes(&sandbox, job, "outlast host test gp", "outlast host test gpu-one");
    completes(&sandbox, job, "outlast config get retention.yo", "outlast config get retention.young");
}

#[test]
fn bash_completes() {
    names_of_jobs_keys_and_signals_are_completed("bash");
}

#[test]
fn zsh_completes() {
    names_of_jobs_keys_and_signals_are_completed("zsh");
}

#[test]
fn fish_completes() {
    names_of_jobs_keys_and_signals_are_completed("fish");
}

/// To look for names must not make a home, and a name that is there twice is offered once.
#[test]
fn a_shell_that_asks_changes_nothing() {
    let sandbox = sandbox();
    let asked = |words: &[&str]| {
        let call = sandbox.call(["--", "outlast"]).args(words).env("OUTLAST_COMPLETE", "fish");
        call.run().ok().text()
    };
    assert!(asked(&["kill", ""]).starts_with("--"), "only options");
    assert!(!sandbox.home().exists());
    sandbox.start(["--name", "web", "cat"]);
    let said = asked(&["kill", ""]);
    assert!(said.starts_with("web\trunning: cat\n"), "{said:?}");
    assert!(asked(&["kill", "1"]).starts_with("1\t"), "by number where a number is begun");
}
