//! The walls around an agent's jobs come from the server and the user's settings: no parameter of a call moves them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

const KEY: &str = "private-key-of-the-user";

/// A user's home with something to hide, and a project in it.
struct Home {
    sandbox: Sandbox,
}

impl Home {
    fn new(settings: &str) -> Self {
        let home = Self { sandbox: Sandbox::new() };
        for folder in [".ssh", ".aws", ".config/outlast", "project/sub", "shims", "other"] {
            std::fs::create_dir_all(home.path(folder)).unwrap();
        }
        for file in [".ssh/id", ".aws/credentials", "notes"] {
            std::fs::write(home.path(file), KEY).unwrap();
        }
        std::fs::write(home.path(".bashrc"), "").unwrap();
        std::fs::write(home.path(".config/outlast/config.toml"), settings).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path().canonicalize().unwrap().join("user").join(name)
    }

    /// A server that was started in a folder.
    fn server_in(&self, folder: &Path) -> Client {
        let mut command = self.sandbox.command(&[]);
        command.env("HOME", self.path("")).current_dir(folder);
        Client::start(command).initialized("2025-06-18", &json!({}))
    }
}

/// Whether the sandbox works here at all; if not, it must have said so.
fn works(client: &mut Client) -> bool {
    let said = client.call("run_shell_command", json!({"command": "echo begun"}));
    let works = said["isError"] != true && said["structuredContent"]["exit_code"] == 0;
    if !works {
        let why = format!("there is no such sandbox: {said}");
        outlast_testkit::left_out(&why, "apt-get install bubblewrap, on a kernel with Landlock");
    }
    works
}

#[test]
fn no_parameter_of_a_call_opens_a_folder() {
    for by in ["kernel", "bwrap"] {
        let home = Home::new(&format!("[agents.sandbox]\nby = \"{by}\"\n"));
        let mut client = home.server_in(&home.path("project"));
        if !works(&mut client) {
            continue;
        }
        std::os::unix::fs::symlink(home.path(".ssh"), home.path("project/link")).unwrap();
        let show = |name: &str| home.path(name).display().to_string();
        // Where it begins is no folder of its own choice.
        let evil = "cat id; touch evil; echo evil >> .bashrc; echo 'default = \"allow\"' > policy.toml";
        for (folder, env) in [
            (show(".ssh"), json!({})),
            ("~/.ssh".to_owned(), json!({})),
            ("link".to_owned(), json!({})),
            ("../.ssh".to_owned(), json!({})),
            ("~/other".to_owned(), json!({})),
            (show(""), json!({"HOME": "/nowhere"})),
            ("~/.config/outlast".to_owned(), json!({})),
            ("/".to_owned(), json!({})),
            ("/etc".to_owned(), json!({})),
        ] {
            let call = json!({"command": evil, "dir_path": folder, "env": env});
            let said = client.refused("run_shell_command", call);
            assert!(said.contains("[agents.sandbox] roots"), "{by}, {folder}: {said}");
            assert!(!said.contains(KEY), "{by}, {folder}: {said}");
        }
        // What the environment of a call names is not readable for that.
        let read = format!(
            "cat {} {} {} {}",
            show(".ssh/id"),
            show(".aws/credentials"),
            show("notes"),
            home.sandbox.path().join("home/jobs/1/output.log").display()
        );
        for env in [
            json!({}),
            json!({"JAVA_HOME": show(".aws")}),
            json!({"VIRTUAL_ENV": show(".ssh"), "GOROOT": show(".ssh"), "PNPM_HOME": show(".aws")}),
            json!({"PATH": "/shims:/usr/bin:/bin"}),
            json!({"PATH": format!("{}:{}:/usr/bin:/bin", show("shims"), show(".ssh"))}),
            json!({"HOME": show("project"), "PATH": format!("{}:/usr/bin:/bin", show(""))}),
            json!({"HOME": home.sandbox.path().display().to_string()}),
        ] {
            let said = client.tool("run_shell_command", json!({"command": read, "env": env}));
            assert_eq!(said["exit_code"], 1, "{by}, {env}: {said}");
            let output = said["output"].as_str().unwrap();
            assert!(!output.contains(KEY) && !output.contains("begun"), "{by}, {env}: {output}");
        }
        for file in [".ssh/evil", "evil", "other/evil", ".config/outlast/policy.toml"] {
            assert!(!home.path(file).exists(), "{by}: {file}");
        }
        assert_eq!(std::fs::read_to_string(home.path(".bashrc")).unwrap(), "");
        // Its own project is all its own, wherever in it a job begins.
        let call = json!({"command": "touch here ../above && ls ..", "dir_path": "sub"});
        assert_eq!(client.tool("run_shell_command", call)["exit_code"], 0, "{by}");
        assert!(home.path("project/sub/here").exists() && home.path("project/above").exists(), "{by}");
    }
}

#[test]
fn the_user_names_the_folders_that_agents_work_in() {
    let home = Home::new("[agents.sandbox]\nroots = [\"~/other\", \"~/project/sub\"]\n");
    std::fs::create_dir(home.path("other/deep")).unwrap();
    let mut client = home.server_in(&home.path("project/sub"));
    if !works(&mut client) {
        return;
    }
    let mut run = |folder: &str, line: &str| -> Value {
        client.call("run_shell_command", json!({"command": line, "dir_path": folder}))
    };
    let said = run("~/other/deep", &format!("touch a ../b {}/c", home.path("project/sub").display()));
    assert_eq!(said["structuredContent"]["exit_code"], 0, "{said}");
    for file in ["other/deep/a", "other/b", "project/sub/c"] {
        assert!(home.path(file).exists(), "{file}");
    }
    let said = run("..", "touch evil");
    assert_eq!(said["isError"], true, "{said}");
    assert!(said.to_string().contains("roots") && !home.path("project/evil").exists(), "{said}");
    // A root that a job has replaced by a link is none.
    let said = run("~/other", "rmdir deep 2>/dev/null; rm -r deep; ln -s ~/.ssh deep");
    assert_eq!(said["structuredContent"]["exit_code"], 0, "{said}");
    let linked = "[agents.sandbox]\nroots = [\"~/other\", \"~/other/deep\"]\n";
    std::fs::write(home.path(".config/outlast/config.toml"), linked).unwrap();
    let mut client = home.server_in(&home.path("other"));
    let said = client.refused("run_shell_command", json!({"command": "cat ~/.ssh/id"}));
    assert!(said.contains("link") && !said.contains(KEY), "{said}");
}

#[test]
fn a_server_in_the_home_or_above_says_which_setting_is_missing() {
    let home = Home::new("[agents.sandbox]\n");
    let above = home.sandbox.path().to_owned();
    for folder in [home.path(""), above, "/".into(), home.path(".config"), home.path(".config/outlast")] {
        let mut client = home.server_in(&folder);
        let said = client.refused("run_shell_command", json!({"command": "touch evil; cat ~/.ssh/id"}));
        assert!(said.contains("[agents.sandbox] roots"), "{}: {said}", folder.display());
        assert!(!folder.join("evil").exists() && !said.contains(KEY), "{said}");
        let call = json!({"command": "touch evil", "dir_path": home.path("project")});
        client.refused("run_shell_command", call);
        assert!(!home.path("project/evil").exists());
    }
}
