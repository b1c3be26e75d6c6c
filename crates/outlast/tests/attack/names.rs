//! Protected names where the root is wider than the project: in the folder that the job works in, in repositories beside and below
//! it, behind links, and moved away with the folders above them.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::client::{Client, Sandbox};
use crate::{Tally, chosen};

/// Lines in `src/project` of a root `src`, and what must not be there after them.
const LINES: &[(&str, &str)] = &[
    ("echo x > .mcp.json", "project/.mcp.json"),
    ("ln -s x .envrc", "project/.envrc"),
    ("mkdir -p .vscode && echo x > .vscode/tasks.json", "project/.vscode/tasks.json"),
    ("mkdir d && mv d .claude && echo x > .claude/settings.json", "project/.claude/settings.json"),
    ("mv ../project ../p; mkdir ../project; echo x > ../project/.mcp.json", "project/.mcp.json"),
    ("echo x > ../.mcp.json", ".mcp.json"),
    ("echo x > ../beside/.mcp.json", "beside/.mcp.json"),
    ("mkdir -p ../beside/.vscode && echo x > ../beside/.vscode/tasks.json", "beside/.vscode/tasks.json"),
    ("echo x > ../beside/.git/hooks/evil", "beside/.git/hooks/evil"),
    (
        "mv ../beside ../b; mkdir -p ../beside/.git/hooks; echo x > ../beside/.git/hooks/evil",
        "beside/.git/hooks/evil",
    ),
    ("echo x > below/deep/.envrc", "project/below/deep/.envrc"),
    ("mv below b; mkdir -p below/deep; echo x > below/deep/.envrc", "project/below/deep/.envrc"),
    ("echo x > linked/.git/hooks/evil", "project/there/hooks/evil"),
    ("echo x > there/hooks/evil", "project/there/hooks/evil"),
    (
        "rm linked/.git; mkdir -p linked/.git/hooks; echo x > linked/.git/hooks/evil",
        "project/linked/.git/hooks/evil",
    ),
    ("mv there t; mkdir -p there/hooks; echo x > there/hooks/evil", "project/there/hooks/evil"),
    (
        "echo x > tree/.git; echo x > \"$(git -C tree rev-parse --git-dir)/hooks/evil\"",
        "beside/.git/worktrees/tree/hooks/evil",
    ),
];

fn repository(folder: &Path) {
    let made = Command::new("git").args(["init", "-q"]).arg(folder).status();
    assert!(made.is_ok_and(|done| done.success()), "git is here");
}

fn try_all(by: &str) -> Tally {
    let mut tally = Tally::default();
    for (line, name) in chosen(LINES.to_vec(), 4) {
        let sandbox = Sandbox::new();
        let home = sandbox.path().canonicalize().unwrap().join("user");
        let (root, project) = (home.join("src"), home.join("src/project"));
        std::fs::create_dir_all(home.join(".config/outlast")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let settings = format!("[agents.sandbox]\nby = \"{by}\"\nroots = [\"{}\"]\n", root.display());
        std::fs::write(home.join(".config/outlast/config.toml"), settings).unwrap();
        for folder in ["project/below/deep", "beside", "project/linked"] {
            repository(&root.join(folder));
        }
        std::fs::rename(project.join("linked/.git"), project.join("there")).unwrap();
        std::os::unix::fs::symlink("../there", project.join("linked/.git")).unwrap();
        let mut tree = Command::new("git");
        tree.args(["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
        assert!(tree.current_dir(root.join("beside")).status().is_ok_and(|done| done.success()));
        let mut tree = Command::new("git");
        tree.args(["worktree", "add", "-q", "--detach"]).arg(project.join("tree"));
        assert!(tree.current_dir(root.join("beside")).status().is_ok_and(|done| done.success()));
        let mut command = sandbox.command(&[]);
        command.env("HOME", &home).current_dir(&project);
        let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
        client.call("run_shell_command", json!({"command": line, "timeout": 30}));
        client.hang_up();
        let made = root.join(name);
        // What was made while the job ran may be a placeholder, which goes with it: those are no files and no links.
        let is_made = made.is_symlink() || std::fs::read_to_string(&made).is_ok_and(|text| text == "x\n");
        tally.count(&format!("{line}, by {by}"), is_made);
    }
    tally
}

#[test]
fn protected_names_are_closed_wherever_somebody_works() {
    let mut tally = Tally::default();
    for by in ["kernel", "bwrap"] {
        let Tally { tried, through } = try_all(by);
        tally.tried += tried;
        tally.through.extend(through);
    }
    tally.nothing_got_through("protected names, in a root that is wider than the project");
}
