//! Protected names below writable folders, and the namespaces that hold them: what a job can't change, what still works,
//! and that nothing is left behind.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has, left_out};

use crate::sandbox;
use crate::sandbox::{can, confined};

/// Whether this user can have namespaces.
pub(crate) fn has_namespaces() -> bool {
    match outlast_pty::confine::can_enclose() {
        Ok(()) => true,
        Err(error) => {
            left_out(&format!("no namespaces: {error}"), "allow user namespaces");
            false
        }
    }
}

/// A sandbox whose folder is a repository with one commit, if all that is needed is here.
fn repository() -> Option<Sandbox> {
    let sandbox = sandbox();
    if !can(&sandbox) || !has_namespaces() || !has("git") {
        return None;
    }
    git(&sandbox, &["init", "-q", "."]);
    for (name, value) in [("user.email", "me@example.org"), ("user.name", "me")] {
        git(&sandbox, &["config", name, value]);
    }
    std::fs::write(sandbox.work().join("first"), "1").unwrap();
    git(&sandbox, &["add", "first"]);
    git(&sandbox, &["commit", "-q", "-m", "first"]);
    Some(sandbox)
}

fn git(sandbox: &Sandbox, args: &[&str]) {
    let done = sandbox.command("git").args(args).status().unwrap();
    assert!(done.success(), "git {args:?}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Insists that a folder has these names again, and no others.
#[track_caller]
fn comes_back_to(folder: &Path, before: &[String]) {
    eventually("nothing is left behind", TEST_TIMEOUT, || {
        let now = names(folder);
        if now == before { Ok(()) } else { Err(now) }
    });
}

#[test]
fn names_that_run_outside_later_can_be_neither_changed_nor_made_nor_moved_away() {
    let Some(sandbox) = repository() else { return };
    let work = sandbox.work();
    std::fs::create_dir(work.join(".claude")).unwrap();
    std::fs::write(work.join(".claude/settings.json"), "{}").unwrap();
    std::fs::create_dir_all(work.join("deep/er/.git/hooks")).unwrap();
    std::fs::write(work.join("deep/er/.git/config"), "").unwrap();
    std::fs::create_dir(work.join("conf")).unwrap();
    symlink("conf", work.join(".vscode")).unwrap();
    let (before, inside_git) = (names(&work), names(&work.join(".git")));
    for line in [
        "echo x >> .git/config",
        "touch .git/hooks/pre-commit",
        "rm -rf .git/hooks && mkdir .git/hooks",
        "echo ../evil > .git/commondir",
        "mkdir -p .git/modules/evil",
        "echo x > .git/info/attributes",
        "mv .git moved",
        "echo x > .claude/settings.json",
        "mv .claude moved",
        "rm .vscode",
        "ln -sfn /tmp .vscode",
        "touch conf/tasks.json",
        "echo x > .mcp.json",
        "ln -s first .mcp.json",
        "mv first .mcp.json",
        "ln first .envrc",
        "mkdir .envrc",
        "echo x > .bashrc",
        "mkdir .codex/x",
        "rmdir .codex",
        "mkdir -p .outlast && echo 'default = \"allow\"' > .outlast/policy.toml",
        "touch deep/er/.git/hooks/pre-push",
        "mv deep/er/.git deep/er/moved",
    ] {
        let ran = confined(&sandbox, &[], line);
        assert_ne!(ran.code, Some(0), "{line}: {}", ran.text());
    }
    comes_back_to(&work, &before);
    comes_back_to(&work.join(".git"), &inside_git);
    assert_eq!(std::fs::read_to_string(work.join(".claude/settings.json")).unwrap(), "{}");
}

#[test]
fn a_person_can_commit_in_the_sandbox_and_git_does_not_see_what_is_put_there() {
    let Some(sandbox) = repository() else { return };
    let before = names(&sandbox.work());
    let line = "echo 2 > first && git commit -q -a -m second && git status --porcelain && git log --format=%s && cat .git/HEAD";
    let text = confined(&sandbox, &[], line).ok().text().replace('\r', "");
    assert!(text.starts_with("second\nfirst\nref: "), "{text}");
    comes_back_to(&sandbox.work(), &before);
    git(&sandbox, &["fsck", "--no-dangling"]);
}

#[test]
fn it_sees_its_own_processes_only_and_its_end_and_left_overs_are_as_ever() {
    let Some(sandbox) = repository() else { return };
    // Beside ours there is only the init, which neither ends nor shows anything.
    let line = "echo pid $$; ls -d /proc/[0-9]* | wc -l; kill -9 1; kill -9 -1; ls /proc/1/root /proc/1/fd/ && cat /proc/1/fd/0";
    let text = confined(&sandbox, &[], line).text();
    assert!(text.contains("pid 2"), "{text}");
    assert!(!text.contains("bin"), "{text}");
    // It ends when the one behind it is what it will be.
    let line = "sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; exit 7";
    let job = sandbox.start(["--sandbox", "--", "bash", "-c", line]);
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 7, "{ended}");
    let left = ended["left_behind"].as_array().unwrap();
    assert!(left.len() == 1 && left[0]["program"] == "sleep", "{ended}");
    // The pid is that of this machine.
    let pid = left[0]["pid"].as_u64().unwrap();
    assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim(), "sleep");
    sandbox.run(["kill", &job.to_string()]).ok();
    let killed = sandbox.start(["--sandbox", "--", "sleep", "1000"]);
    sandbox.run(["kill", &killed.to_string()]).ok();
    let receipt = sandbox.info(killed);
    assert!(receipt.to_string().contains("SIGTERM"), "{receipt}");
    sandbox.nothing_runs();
}

#[test]
fn nothing_is_left_behind_when_keeper_and_heir_are_killed_and_jobs_share_what_is_there() {
    let Some(sandbox) = repository() else { return };
    let work = sandbox.work();
    let before = names(&work);
    let first = sandbox.start(["--sandbox", "--", "sh", "-c", "echo up; read x; exit 0"]);
    let second =
        sandbox.start(["--sandbox", "--", "sh", "-c", "echo up; read x; echo x > .mcp.json; echo done"]);
    for job in [first, second] {
        sandbox.wait_for_text(job, "up");
    }
    assert!(names(&work).contains(&".mcp.json".to_owned()));
    let info = sandbox.info(first);
    for process in ["heir", "keeper"] {
        let pid = info[process]["pid"].as_u64().unwrap().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    // Its command reads the end of its terminal, and goes.
    let pid = info["process"]["pid"].as_u64().unwrap();
    eventually("the command is gone", TEST_TIMEOUT, || {
        if Path::new(&format!("/proc/{pid}")).exists() { Err(pid) } else { Ok(()) }
    });
    // The other one still needs them.
    sandbox.run(["send", &second.to_string(), "x"]).ok();
    sandbox.wait_for_text(second, "done");
    sandbox.wait_for_end(second);
    comes_back_to(&work, &before);
    sandbox.nothing_runs();
}

#[test]
fn without_namespaces_the_receipt_says_that_names_are_open() {
    let sandbox = sandbox();
    if !can(&sandbox) {
        return;
    }
    let run = ["--json", "run", "-n", "--sandbox", "true"];
    let Some(ran) = crate::without_namespaces(&sandbox, &run) else { return };
    let ran = ran.ok().json();
    let by = sandbox.info(ran["handle"].as_u64().unwrap())["sandbox_by"].to_string();
    assert!(by.contains("protected names are open"), "{by}");
}
