//! The home: whose it is, who may look, how long its path is, and what must not be followed.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use outlast_testkit::Sandbox;

use crate::{all_jobs, sandbox};

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn folders_and_files_are_for_their_owner_alone() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    sandbox.start(["--name", "web", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.wait_for_text(1, "up");
    let piped = sandbox.start(["--pipe", "--", &fixture, "both"]);
    sandbox.wait_for_end(piped);
    let ended = sandbox.start(["--", &fixture, "says", "up"]);
    sandbox.wait_for_end(ended);
    let mut seen = 0;
    let mut folders = vec![sandbox.home().to_owned()];
    while let Some(folder) = folders.pop() {
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                // A socket is made with the folder's protection; its own mode keeps others out as well.
                assert_eq!(meta.mode() & 0o077, 0, "{} is {:o}", entry.path().display(), meta.mode());
                assert!(meta.mode() & 0o111 == 0 || entry.file_name() == "keeper.sock", "{:?}", entry.path());
                seen += 1;
            }
        }
    }
    assert!(seen > 15, "{seen} files");
}

#[test]
fn a_home_that_is_no_safe_folder_is_refused() {
    let sandbox = sandbox();
    let file = sandbox.root().join("file");
    std::fs::write(&file, "").unwrap();
    let writable = sandbox.root().join("writable");
    std::fs::create_dir(&writable).unwrap();
    chmod(&writable, 0o770);
    let mut bad = vec![(file.clone(), "file"), (file.join("below"), "file/below"), (writable, "chmod 700")];
    if rustix::process::geteuid().is_root() {
        let foreign = sandbox.root().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        std::os::unix::fs::chown(&foreign, Some(12345), None).unwrap();
        bad.push((foreign, "belongs to user 12345"));
    }
    for (home, said) in bad {
        for verb in [&["run", "-d", "true"][..], &["jobs"], &["read", "1"], &["prune"]] {
            let ran = sandbox.call(["--home"]).arg(&home).args(verb).run().code(1).says(said);
            assert!(ran.stdout.is_empty(), "{ran}");
        }
        let error = sandbox.call(["--json", "--home"]).arg(&home).arg("jobs").run().code(1).json();
        assert_eq!(error["error"]["kind"], "bad_home", "{error}");
        sandbox.call(["--home"]).arg(&home).arg("doctor").run().code(1);
        assert!(!home.join("jobs").exists(), "nothing was made in it");
    }
    assert!(file.is_file(), "and nothing was harmed");
}

#[test]
fn where_the_home_is_found() {
    let sandbox = sandbox();
    let base = |call: outlast_testkit::Call| call.without_env("OUTLAST_HOME");
    base(sandbox.call(["run", "-d", "true"])).run().ok();
    assert!(sandbox.root().join("state/outlast/jobs/1").is_dir(), "$XDG_STATE_HOME/outlast");
    let user = |call| base(call).without_env("XDG_STATE_HOME");
    user(sandbox.call(["run", "--", "true"])).run().ok();
    assert!(sandbox.root().join("user/.local/state/outlast/jobs/1").is_dir(), "~/.local/state/outlast");
    user(sandbox.call(["jobs"])).without_env("HOME").run().code(1).says("OUTLAST_HOME");
    sandbox.wait_for_end(1);
}

#[test]
fn a_home_with_a_long_path_works() {
    let deep = format!("state/{}", ["a-folder-with-a-rather-long-name"; 8].join("/"));
    let sandbox = Sandbox::with_home(env!("CARGO_BIN_EXE_outlast"), &deep);
    assert!(sandbox.home().as_os_str().len() > 250);
    let job = sandbox.fixture_job(&["asks"]);
    sandbox.json(["wait", "1", "--input", "--deadline", "30s"]);
    let answer = sandbox.json(["send", "1", "Ada", "--deadline", "30s"]);
    assert_eq!(answer["reason"], "exit", "{answer}");
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
}

#[test]
fn a_planted_link_is_not_followed() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says", "secret"]);
    sandbox.wait_for_end(job);
    sandbox.nothing_runs();
    let elsewhere = sandbox.root().join("elsewhere");
    std::fs::rename(sandbox.job(1), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, sandbox.job(1)).unwrap();
    let ran = sandbox.run(["read", "1"]).code(1);
    assert!(!ran.text().contains("secret"), "{ran}");
    assert!(all_jobs(&sandbox).is_empty());
    sandbox.run(["prune", "--all"]).ok();
    assert!(elsewhere.join("output.log").is_file(), "nothing behind the link is removed");
    // Nor is a link inside a job's folder.
    std::fs::remove_file(sandbox.job(1)).unwrap();
    std::fs::rename(&elsewhere, sandbox.job(1)).unwrap();
    let outside = sandbox.root().join("outside");
    std::fs::write(&outside, "not of this job\n").unwrap();
    std::fs::remove_file(sandbox.job(1).join("output.log")).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.job(1).join("output.log")).unwrap();
    let ran = sandbox.run(["read", "1"]);
    assert!(!ran.text().contains("not of this job"), "{ran}");
    sandbox.run(["prune", "--all"]).ok();
    assert!(outside.is_file());
}

#[test]
fn what_lies_about_in_the_home_disturbs_nobody() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says", "fine"]);
    sandbox.wait_for_end(job);
    let jobs = sandbox.home().join("jobs");
    std::fs::create_dir(jobs.join("12")).unwrap();
    std::fs::create_dir(jobs.join("not-a-number")).unwrap();
    std::fs::write(jobs.join("13"), "a file").unwrap();
    std::fs::create_dir(jobs.join("14")).unwrap();
    std::fs::write(jobs.join("14/info.json"), "{\"format\":1,").unwrap();
    let listed = all_jobs(&sandbox);
    assert_eq!(listed.len(), 1, "{listed:?}");
    sandbox.run(["read", "14"]).code(1).says("record of job 14");
    assert_eq!(sandbox.start(["true"]), 15, "and no number is taken twice");
    sandbox.wait_for_end(15);
}
