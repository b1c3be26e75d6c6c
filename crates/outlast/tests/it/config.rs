//! `outlast config`: every setting with its origin, and changes that leave the rest of the file alone.

use std::path::PathBuf;

use outlast_testkit::Sandbox;

use crate::sandbox;

fn file(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("config/outlast/config.toml")
}

fn origin(sandbox: &Sandbox, key: &str) -> (String, String) {
    let listed = sandbox.json(["config"]);
    let all = listed["settings"].as_array().unwrap();
    let one = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key}: {listed}"));
    (one["value"].as_str().unwrap().to_owned(), one["origin"].as_str().unwrap().to_owned())
}

#[test]
fn a_setting_is_changed_in_the_file_and_everything_else_stays() {
    let sandbox = sandbox();
    let path = sandbox.run(["config", "path"]).ok().text();
    assert_eq!(path.trim_end(), file(&sandbox).to_str().unwrap());
    assert_eq!(origin(&sandbox, "retention.age"), ("7d".into(), "default".into()));
    sandbox.run(["config", "set", "retention.age", "14d"]).ok();
    assert_eq!(std::fs::read_to_string(file(&sandbox)).unwrap(), "[retention]\nage = \"14d\"\n");
    let written =
        "# mine\n[retention]\nage = \"14d\" # two weeks\n\n[[wake]]\nkind = \"file\"\npath = \"/tmp/x\"\n";
    std::fs::write(file(&sandbox), written).unwrap();
    sandbox.run(["config", "set", "retention.jobs", "50"]).ok();
    sandbox.run(["config", "set", "agents.limits.memory", "2GiB"]).ok();
    sandbox.run(["config", "set", "secrets.env", "[\"ACME_*\"]"]).ok();
    let now = std::fs::read_to_string(file(&sandbox)).unwrap();
    for line in [
        "# mine",
        "age = \"14d\" # two weeks",
        "jobs = 50",
        "[[wake]]",
        "[agents.limits]",
        "memory = \"2GiB\"",
    ] {
        assert!(now.lines().any(|one| one == line), "{line}\n{now}");
    }
    assert_eq!(sandbox.run(["config", "get", "retention.jobs"]).ok().text(), "50\n");
    assert_eq!(origin(&sandbox, "agents.limits.memory"), ("2GiB".into(), "file".into()));
    assert_eq!(origin(&sandbox, "secrets.env").1, "file");
    sandbox.run(["config", "unset", "retention.age"]).ok();
    assert_eq!(origin(&sandbox, "retention.age"), ("7d".into(), "default".into()));
    // What is in force is what was set.
    sandbox.run(["config", "set", "log.cap", "2MiB"]).ok();
    let job = sandbox.start(["echo", "hi"]);
    assert_eq!(sandbox.info(job)["log_cap"], 2 << 20);
}

#[test]
fn what_is_wrong_is_refused_and_the_file_stays_as_it_was() {
    let sandbox = sandbox();
    sandbox.run(["config", "set", "kill.grace", "5s"]).ok();
    let before = std::fs::read(file(&sandbox)).unwrap();
    sandbox
        .run(["config", "set", "kill.grace", "soon"])
        .code(2)
        .says("kill.grace was not changed")
        .says("soon");
    sandbox.run(["config", "set", "retention.jobs", "many"]).code(2).says("retention.jobs was not changed");
    sandbox.run(["config", "set", "retention.agee", "1d"]).code(2).says("did you mean: retention.age");
    sandbox.run(["config", "get", "nothing.like.it"]).code(2).says("outlast config");
    sandbox.run(["config", "set", "wake.kind", "file"]).code(2).says("by hand");
    assert_eq!(std::fs::read(file(&sandbox)).unwrap(), before);
    std::fs::write(file(&sandbox), "[retention\n").unwrap();
    sandbox.run(["config", "set", "kill.grace", "1s"]).code(2).says("is not TOML");
    assert_eq!(std::fs::read(file(&sandbox)).unwrap(), b"[retention\n");
}

#[test]
fn a_file_that_is_a_link_stays_one() {
    let sandbox = sandbox();
    let real = sandbox.root().join("dotfiles.toml");
    std::fs::write(&real, "").unwrap();
    std::fs::create_dir_all(file(&sandbox).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, file(&sandbox)).unwrap();
    sandbox.run(["config", "set", "retention.age", "3d"]).ok();
    assert!(file(&sandbox).is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("3d"));
}
