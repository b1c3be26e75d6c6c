//! A person can name a pane and its shell: notices come at its empty prompt, in a form that this shell ignores, and
//! nowhere else.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has};

use super::panes::{Server, shell};
use super::{entry, sandbox};

fn name_shell(sandbox: &Sandbox, shell: &str, timeout: &str) {
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!(
        "[[wake]]\nkind = \"tmux\"\npane = \"%0\"\nshell = \"{shell}\"\ntimeout = \"{timeout}\"\non = [\"exit\"]\n"
    );
    std::fs::write(config.join("config.toml"), text).unwrap();
}

/// A job that ends, whose end is told to the pane; its number.
#[track_caller]
fn ends(sandbox: &Sandbox, server: &Server) -> u64 {
    let call = sandbox.call(["--json", "run", "-d", "echo '$(touch INJECTED)'; exit 3"]);
    let ran = call.env("TMUX", format!("{},0,0", server.socket().display())).run().ok().json();
    ran["handle"].as_u64().unwrap()
}

#[test]
fn each_shell_gets_a_notice_that_it_ignores_also_over_two_rows() {
    let shells = [
        ("bash", vec!["bash", "--norc", "--noprofile", "-i"], "# [outlast"),
        ("dash", vec!["dash", "-i"], "# [outlast"),
        ("zsh", vec!["zsh", "-f"], ": '[outlast"),
        ("fish", vec!["fish", "--no-config"], "# [outlast"),
    ];
    for (name, command, form) in shells.into_iter().filter(|(name, ..)| has(name)) {
        let sandbox = sandbox();
        name_shell(&sandbox, name, "60s");
        let Some(server) = Server::start(&sandbox, &command) else { return };
        let wide = if name == "bash" { "60" } else { "100" };
        server.tmux(&["resize-window", "-x", wide]);
        eventually("a prompt", TEST_TIMEOUT, || {
            let shown = server.shows();
            if shown.trim_end().ends_with(['$', '#', '%', '>']) { Ok(()) } else { Err(shown) }
        });
        if name == "fish" {
            // Its prompt for people who are not root ends like a command that is not whole.
            server.tmux(&["send-keys", "-l", "function fish_prompt; printf '$ '; end; clear"]);
            server.tmux(&["send-keys", "Enter"]);
            server.wait_for("$ ");
        }
        let job = ends(&sandbox, &server);
        let notice = format!("{form}: automatic notice] job {job} exit: failed, exit code 3");
        eventually("the notice", TEST_TIMEOUT, || {
            let (shown, waits) = (server.shows(), sandbox.json(["wakes", "list"])["wakes"].clone());
            let is_told = waits.as_array().is_some_and(Vec::is_empty);
            if shown.contains(&notice) && is_told { Ok(()) } else { Err((name, shown, waits)) }
        });
        server.tmux(&["send-keys", "-l", "expr 42 + 4200"]);
        server.tmux(&["send-keys", "Enter"]);
        server.wait_for("4242");
        let shown = server.shows();
        assert!(!shown.contains("not found") && !shown.contains("rror"), "{name}: {shown}");
        assert!(!sandbox.work().join("INJECTED").exists());
    }
}

#[test]
fn nothing_is_typed_into_another_shell_a_question_a_draft_or_half_a_command() {
    let states = [
        ("zsh", "", "a shell would run it"),
        ("bash", "read -p '$ ' a; echo \"got=[$a]\"", "does not wait for input"),
        ("bash", "cat <<END", "no empty prompt"),
        ("bash", "python3 -q", "not the program that was meant"),
        ("bash", "touch HALF", "half typed"),
    ];
    for (named, typed, why) in states {
        let sandbox = sandbox();
        name_shell(&sandbox, named, "1s");
        let Some(server) = shell(&sandbox) else { return };
        server.tmux(&["send-keys", "-l", typed]);
        if why != "half typed" {
            server.tmux(&["send-keys", "Enter"]);
            eventually("it is as it shall be", TEST_TIMEOUT, || {
                let shown = server.shows();
                let last = shown.trim_end().lines().last().unwrap_or_default().to_owned();
                if typed.is_empty() || !last.contains(typed) { Ok(()) } else { Err(shown) }
            });
        }
        ends(&sandbox, &server);
        let failed = entry(&sandbox, "wake_failed");
        assert!(failed["text"].as_str().unwrap().contains(why), "{typed}: {failed}");
        let shown = server.shows();
        assert!(!shown.contains("outlast") && !shown.contains("got=[]"), "{typed}: {shown}");
        assert!(!sandbox.work().join("HALF").exists());
    }
}

#[test]
fn a_shell_whose_form_is_not_known_is_refused() {
    let sandbox = sandbox();
    name_shell(&sandbox, "csh", "1s");
    sandbox.call(["run", "true"]).run().code(2).says("csh").says("choose among: bash, dash, fish, zsh");
}
