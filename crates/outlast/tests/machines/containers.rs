//! Containers and pods, with stand-ins for `docker` and `kubectl` that take exactly the arguments that the real ones do; and the program put where it is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_testkit::{Sandbox, has};

use super::sandbox;

/// A program of the near machine.
fn program(near: &Sandbox, name: &str, text: &str) {
    let bin = near.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(name), text).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn call(near: &Sandbox, args: &[&str]) -> outlast_testkit::Call {
    let path = format!("{}:{}", near.root().join("bin").display(), std::env::var("PATH").unwrap());
    near.call(args).env("PATH", path)
}

/// A stand-in that enters the far machine if its arguments are exactly these, followed by a line for `sh -c`.
fn stand_in(near: &Sandbox, far: &Path, name: &str, wanted: &str, shell: &str) {
    let text = format!(
        "#!/bin/sh\nline=\nfor word; do last=\"$word\"; done\nwords=\"$*\"\n\
         [ \"$words\" = \"{wanted} sh -c $last\" ] || {{ echo \"unexpected arguments: $words\" >&2; exit 64; }}\n\
         mkdir -p {far}/home && cd {far}/home || exit 1\n\
         exec env -i PATH=/usr/bin:/bin HOME={far}/home {shell} -c \"$last\"\n",
        far = far.display()
    );
    program(near, name, &text);
}

/// The far machines: a name, how it is reached, what runs there, and what it is entered by.
fn machines(near: &Sandbox) -> Vec<(&'static str, String, PathBuf)> {
    let far = |name: &str| near.root().join("far").join(name);
    stand_in(near, &far("docker"), "docker", "exec -i web-1", "sh");
    stand_in(near, &far("podman"), "podman", "exec -i web-2", "sh");
    stand_in(near, &far("kubectl"), "kubectl", "exec -i -n prod web-0 --", "busybox sh");
    vec![
        ("docker", "docker:web-1".into(), far("docker")),
        ("podman", "podman:web-2".into(), far("podman")),
        ("kubectl", "kubectl:prod/web-0".into(), far("kubectl")),
    ]
}

/// Nothing is there but a shell: the program comes through the same pipe, and is used from then on.
#[test]
fn a_machine_without_the_program_gets_it_through_the_same_pipe() {
    if !has("busybox") {
        return;
    }
    let near = sandbox();
    for (name, reach, far) in machines(&near) {
        let missing = call(&near, &["host", "add", name, &reach]).run().ok();
        assert!(missing.text().contains(name), "{missing}");
        let missing = call(&near, &["host", "test", name]).run();
        assert_ne!(missing.code, Some(0), "{missing}");
        assert!(missing.stderr.contains("--bootstrap"), "it says what to do: {missing}");
        let own = near.program().to_str().unwrap().to_owned();
        let added = call(&near, &["host", "add", name, &reach, "--bootstrap", "--binary", &own]).run().ok();
        assert!(added.stderr.contains("put outlast"), "{added}");
        let version = concat!(".local/share/outlast/bin/", env!("CARGO_PKG_VERSION"), "/outlast");
        let there = far.join("home").join(version);
        assert_eq!(std::fs::read(&there).unwrap(), std::fs::read(&own).unwrap(), "byte for byte");
        let tested = call(&near, &["host", "test", name]).run().ok();
        assert!(tested.text().contains("answers: outlast"), "{tested}");
        let ran = call(&near, &["run", "--on", name, "echo $HOME; exit 7"]).run();
        assert_eq!(ran.code, Some(7), "{ran}");
        assert!(ran.text().contains(far.to_str().unwrap()), "{ran}");
    }
}

#[test]
fn a_damaged_or_foreign_program_is_not_left_behind() {
    let near = sandbox();
    let (_, reach, far) = machines(&near).remove(0);
    let script = near.root().join("no-program");
    std::fs::write(&script, "#!/bin/sh\necho outlast 9.9.9\n").unwrap();
    let refused =
        call(&near, &["host", "add", "box", &reach, "--bootstrap", "--binary", script.to_str().unwrap()])
            .run();
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.stderr.contains("not a program"), "{refused}");
    assert!(!far.join("home/.local").exists());
    assert!(call(&near, &["host", "list"]).run().ok().text().is_empty(), "it was not added either");
}

/// What a login shell makes of the line must not depend on which it is.
#[test]
fn the_line_for_the_other_side_means_the_same_to_every_login_shell() {
    let far = sandbox();
    let line = outlast_remote::hosts::remote_line(Some("/nowhere/outlast"));
    let bin = far.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("outlast"), "#!/bin/sh\necho relay of $HOME: $1\n").unwrap();
    std::fs::set_permissions(bin.join("outlast"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let home = far.root().join("user");
    for shell in ["sh", "bash", "zsh", "fish", "tcsh", "busybox"] {
        if !has(shell) {
            continue;
        }
        for with_home in [true, false] {
            let mut command = std::process::Command::new(shell);
            if shell == "busybox" {
                command.arg("sh");
            }
            let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
            command
                .args(["-c", &format!("exec sh -c '{line}'")])
                .env_clear()
                .env("PATH", path)
                .current_dir(&home);
            if with_home {
                command.env("HOME", &home);
            }
            let ran = command.output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            // zsh finds its home also when nobody says where it is.
            let expected = if with_home { home.display().to_string() } else { "/".into() };
            let fits = said.starts_with(&format!("relay of {expected}")) && said.ends_with(": relay\n");
            assert!(fits, "{shell}: {said} {}", String::from_utf8_lossy(&ran.stderr));
        }
    }
}
