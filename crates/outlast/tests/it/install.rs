//! `outlast install` and `outlast uninstall`: other programs' settings, changed with care.

use std::path::PathBuf;

use outlast_testkit::{Call, Sandbox};
use serde_json::{Value, json};

use crate::sandbox;

/// Everyone's settings file for the user, as seen from the sandbox.
const FILES: [(&str, &str, &str); 12] = [
    ("claude", "user/.claude.json", "mcpServers"),
    ("gemini", "user/.gemini/settings.json", "mcpServers"),
    ("opencode", "config/opencode/opencode.json", "mcp"),
    ("cursor", "user/.cursor/mcp.json", "mcpServers"),
    ("vscode", "config/Code/User/mcp.json", "servers"),
    ("zed", "config/zed/settings.json", "context_servers"),
    ("windsurf", "user/.codeium/windsurf/mcp_config.json", "mcpServers"),
    ("copilot", "user/.copilot/mcp-config.json", "mcpServers"),
    ("qwen", "user/.qwen/settings.json", "mcpServers"),
    ("amp", "config/amp/settings.json", "amp.mcpServers"),
    ("crush", "config/crush/crush.json", "mcp"),
    ("claude-desktop", "config/Claude/claude_desktop_config.json", "mcpServers"),
];

/// A call that finds no client's own command, whatever this machine has.
fn call(sandbox: &Sandbox, args: &[&str]) -> Call {
    sandbox.call(args).env("PATH", "/nowhere")
}

fn put(sandbox: &Sandbox, file: &str, text: &str) -> PathBuf {
    let path = sandbox.root().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_client_gets_its_entry_once_and_loses_only_that() {
    let sandbox = sandbox();
    let program = sandbox.program().to_str().unwrap();
    for (client, file, key) in FILES {
        let path =
            put(&sandbox, file, &json!({ "kept": 1, key: { "other": { "command": "x" } } }).to_string());
        let before = read(&path);
        let dry = call(&sandbox, &["--json", "install", "--client", client, "--dry-run"]).run().ok().json();
        assert_eq!((&dry["result"], &dry["dry_run"]), (&json!("installed"), &json!(true)), "{dry}");
        assert_eq!(read(&path), before, "a dry run changes nothing");
        assert!(!sandbox.root().join(format!("{file}.outlast-backup")).exists());

        let done = call(&sandbox, &["--json", "install", "--client", client]).run().ok().json();
        assert_eq!((&done["result"], &done["command"]), (&json!("installed"), &Value::Null), "{done}");
        let after: Value = serde_json::from_str(&read(&path)).unwrap();
        let entry = &after[key]["outlast"];
        let line = match client {
            "opencode" => entry["command"].clone(),
            _ => json!([&[entry["command"].clone()], entry["args"].as_array().unwrap().as_slice()].concat()),
        };
        let line = if line[0].is_array() { line[0].clone() } else { line };
        assert_eq!((&line[0], &line[1]), (&json!(program), &json!("mcp")), "{after}");
        for approval in ["trust", "alwaysAllow", "autoApprove", "always_allow"] {
            assert!(entry.get(approval).is_none(), "nothing is approved: {entry}");
        }
        assert_eq!((&after["kept"], &after[key]["other"]), (&json!(1), &json!({ "command": "x" })));
        assert_eq!(read(&sandbox.root().join(format!("{file}.outlast-backup"))), before);

        let bytes = read(&path);
        let again = call(&sandbox, &["install", "--client", client]).run().ok();
        assert!(again.text().contains("already there"), "{again}");
        assert_eq!(read(&path), bytes);

        let gone = call(&sandbox, &["--json", "uninstall", "--client", client]).run().ok().json();
        assert_eq!(gone["result"], "removed", "{gone}");
        assert_eq!(read(&path), before, "there and back is nothing");
        let again = call(&sandbox, &["uninstall", "--client", client]).run().ok();
        assert!(again.text().contains("not there"), "{again}");
    }
}

#[test]
fn comments_stay_and_an_old_entry_is_brought_up_to_date() {
    let sandbox = sandbox();
    let text = "// my settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n    // ours\n    \
                \"outlast\": {\n      \"command\": \"/old/outlast\", // old\n      \"args\": [\"mcp\"],\n      \
                \"env\": { \"A\": \"b\" },\n    },\n  },\n}\n";
    let path = put(&sandbox, "config/zed/settings.json", text);
    let done = call(&sandbox, &["--json", "install", "--client", "zed"]).run().ok().json();
    assert_eq!(done["result"], "updated", "{done}");
    assert_eq!(read(&path), text.replace("/old/outlast", sandbox.program().to_str().unwrap()));
    call(&sandbox, &["uninstall", "--client", "zed"]).run().ok();
    let left = read(&path);
    assert!(
        left.contains("// my settings") && left.contains("// dark") && left.contains("// ours"),
        "{left}"
    );
    assert!(!left.contains("outlast\""), "{left}");
}

#[test]
fn codex_keeps_its_toml() {
    let sandbox = sandbox();
    let text = "# mine\nmodel = \"gpt-5\" # good\n\n[mcp_servers.other]\ncommand = \"x\" # y\n";
    let path = put(&sandbox, "user/.codex/config.toml", text);
    call(&sandbox, &["install", "--client", "codex"]).run().ok();
    let with = read(&path);
    assert!(with.starts_with(text) && with.contains("\n[mcp_servers.outlast]\n"), "{with}");
    assert!(
        with.contains("args = [\"mcp\", \"--profile\", \"codex\", \"--longest-call\", \"30m\"]")
            && with.contains("tool_timeout_sec = 1860"),
        "{with}"
    );
    let again = call(&sandbox, &["install", "--client", "codex"]).run().ok();
    assert!(again.text().contains("already there"), "{again}");
    let plain =
        call(&sandbox, &["--json", "install", "--client", "codex", "--profile", "plain"]).run().ok().json();
    assert_eq!(plain["result"], "updated", "{plain}");
    assert!(read(&path).contains("args = [\"mcp\", \"--longest-call\", \"30m\"]\n"), "{}", read(&path));
    call(&sandbox, &["uninstall", "--client", "codex"]).run().ok();
    assert_eq!(read(&path), text);
}

#[test]
fn what_is_broken_or_unknown_is_left_alone() {
    let sandbox = sandbox();
    let broken = [
        ("cursor", "user/.cursor/mcp.json", "{ \"mcpServers\": { "),
        ("gemini", "user/.gemini/settings.json", "{ \"mcpServers\": [1] }"),
        ("qwen", "user/.qwen/settings.json", "[]"),
        ("codex", "user/.codex/config.toml", "[mcp_servers\n"),
        ("amp", "config/amp/settings.json", "{ \"amp.mcpServers\": { \"outlast\": 7 } }"),
    ];
    for (client, file, text) in broken {
        let path = put(&sandbox, file, text);
        for verb in ["install", "uninstall"] {
            let refused = call(&sandbox, &[verb, "--client", client]).run().code(1).says("is left as it is");
            assert!(refused.stderr.contains("--print"), "{refused}");
        }
        assert_eq!(read(&path), text);
        assert!(!sandbox.root().join(format!("{file}.outlast-backup")).exists());
    }
    let none = call(&sandbox, &["install", "--client", "windsurf", "--scope", "project"]).run();
    let _ = none.code(2).says("no settings for a project");
    let unreadable = call(&sandbox, &["--json", "install", "--list"]).run().ok().json();
    let cursor =
        unreadable["clients"].as_array().unwrap().iter().find(|row| row["client"] == "cursor").unwrap();
    assert_eq!((&cursor["found"], &cursor["state"]), (&json!(true), &json!("unreadable settings")));
}

#[test]
fn a_project_has_its_own_and_printing_writes_nothing() {
    let sandbox = sandbox();
    let printed =
        call(&sandbox, &["install", "--client", "vscode", "--scope", "project", "--print"]).run().ok();
    let snippet: Value = serde_json::from_str(&printed.text()).unwrap();
    assert!(!sandbox.work().join(".vscode").exists(), "{printed}");
    call(&sandbox, &["install", "--client", "vscode,claude", "--scope", "project"]).run().ok();
    let written: Value = serde_json::from_str(&read(&sandbox.work().join(".vscode/mcp.json"))).unwrap();
    assert_eq!(written, snippet);
    assert!(sandbox.work().join(".mcp.json").exists());
    let list = call(&sandbox, &["install", "--list", "--scope", "project"]).run().ok().text();
    let states: Vec<&str> = list.lines().filter(|line| line.contains(" found  installed ")).collect();
    assert_eq!(states.len(), 2, "{list}");
    assert!(!sandbox.home().exists(), "no home is made for it");
}

#[test]
fn the_clients_own_command_is_used_and_believed_only_when_it_worked() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    let bin = sandbox.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let claude = bin.join("claude");
    let script = |body: &str| {
        std::fs::write(&claude, format!("#!/bin/sh\necho \"$*\" >> {}/said\n{body}\n", bin.display()))
            .unwrap();
        std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let install = || sandbox.call(["--json", "install", "--client", "claude"]).env("PATH", &path).run();
    script("echo no such thing; exit 3");
    assert!(install().code(1).text().contains("no such thing"));
    script("exit 0");
    assert!(install().code(1).text().contains("does not have the server"));
    let program = sandbox.program().display();
    script(&format!(
        "echo '{{\"mcpServers\": {{\"outlast\": {{\"type\": \"stdio\", \"command\": \"{program}\", \
         \"args\": [\"mcp\", \"--profile\", \"claude\", \"--longest-call\", \"30m\"], \"env\": {{}}}}}}}}' \
         > $HOME/.claude.json"
    ));
    let done = install().ok().json();
    assert_eq!((&done["result"], &done["command"][0]), (&json!("installed"), &json!("claude")), "{done}");
    // What its command can't set is added.
    let file: Value = serde_json::from_str(&read(&sandbox.root().join("user/.claude.json"))).unwrap();
    assert_eq!(file["mcpServers"]["outlast"]["timeout"], 1_860_000, "{file}");
    assert_eq!(install().ok().json()["result"], "already there");
    let said = read(&bin.join("said"));
    let wanted =
        format!("mcp add --scope user outlast -- {program} mcp --profile claude --longest-call 30m\n");
    assert_eq!(said, wanted.repeat(3));
}

/// Where the hooks of each agent are.
const HOOKS: [(&str, &str); 4] = [
    ("claude", "user/.claude/settings.json"),
    ("codex", "user/.codex/hooks.json"),
    ("gemini", "user/.gemini/settings.json"),
    ("opencode", "config/opencode/plugin/outlast.js"),
];

#[test]
fn hooks_come_with_install_tell_how_the_agent_is_and_go_with_uninstall() {
    let sandbox = sandbox();
    for (client, file) in HOOKS {
        let path = sandbox.root().join(file);
        let without = call(&sandbox, &["install", "--client", client]).run().ok();
        drop(without);
        assert!(!path.exists() || !read(&path).contains(" hook "), "only where they are asked for");
        call(&sandbox, &["install", "--client", client, "--hooks"]).run().ok();
        assert!(read(&path).contains("hook") && read(&path).contains(client), "{}", read(&path));
        let again = call(&sandbox, &["install", "--client", client, "--hooks"]).run().ok().text();
        assert!(again.contains("hooks already there"), "{again}");
        call(&sandbox, &["uninstall", "--client", client]).run().ok();
        assert!(!path.exists() || !read(&path).contains("outlast"), "{file}");
    }
    call(&sandbox, &["install", "--client", "zed", "--hooks"]).run().code(2).says("no hooks of zed");
}

#[test]
fn what_an_agents_hooks_tell_is_in_jobs() {
    let sandbox = sandbox();
    let hook = |state: &str, said: Value| {
        let told = sandbox.call(["hook", "claude", state]).stdin(said.to_string()).run().ok().text();
        assert_eq!(told, "", "an agent may read what a hook prints");
    };
    let agents = || sandbox.run(["--json", "jobs"]).ok().json()["agents"].clone();
    hook("working", json!({ "session_id": "s", "cwd": "/project" }));
    assert_eq!((&agents()[0]["state"], &agents()[0]["folder"]), (&json!("working"), &json!("/project")));
    hook("asks", json!({ "cwd": "/project", "message": "Claude needs your permission to use Bash" }));
    assert_eq!(agents()[0]["state"], "asks");
    let asks = "claude in /project waits for you: asks: Claude needs your permission to use Bash";
    sandbox.run(["jobs"]).ok().says(asks);
    hook("asks", json!({ "cwd": "/project", "notification_type": "idle_prompt", "message": "waiting" }));
    assert_eq!(agents()[0]["state"], "idle");
    hook("done", json!({ "cwd": "/project" }));
    assert_eq!(agents(), Value::Null);
}

#[test]
fn the_copy_of_the_file_as_it_once_was_is_never_overwritten() {
    let sandbox = sandbox();
    let pristine = "{ \"theme\": \"dark\" }\n";
    let path = put(&sandbox, "config/zed/settings.json", pristine);
    let backup = sandbox.root().join("config/zed/settings.json.outlast-backup");
    for _ in 0..2 {
        call(&sandbox, &["install", "--client", "zed"]).run().ok();
        call(&sandbox, &["uninstall", "--client", "zed"]).run().ok();
    }
    assert_eq!(read(&backup), pristine);
    let value: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(value, json!({ "theme": "dark" }), "nothing of ours is left: {}", read(&path));
}

#[test]
fn a_file_that_was_made_for_it_goes_with_it() {
    let sandbox = sandbox();
    for client in ["cursor", "codex"] {
        call(&sandbox, &["install", "--client", client]).run().ok();
        call(&sandbox, &["uninstall", "--client", client]).run().ok();
    }
    assert!(!sandbox.root().join("user/.cursor/mcp.json").exists());
    assert!(!sandbox.root().join("user/.codex/config.toml").exists());
}

#[test]
fn one_broken_agent_does_not_keep_the_others_from_being_installed() {
    let sandbox = sandbox();
    put(&sandbox, "user/.cursor/mcp.json", "{ \"mcpServers\": ");
    let ran = call(&sandbox, &["install", "--client", "cursor,zed"]).run().code(1);
    let ran = ran
        .says("cursor: ")
        .says("outlast install --client cursor --print")
        .says("now    Zed has it at once");
    assert!(ran.text().contains("zed: installed"), "{ran}");
}

#[test]
fn a_dry_run_is_a_diff() {
    let sandbox = sandbox();
    put(&sandbox, "config/zed/settings.json", "{\n  \"theme\": \"dark\"\n}\n");
    let shown = call(&sandbox, &["install", "--client", "zed", "--dry-run"]).run().ok().text();
    assert!(
        shown.contains("--- ") && shown.contains("\n+++ ") && shown.contains("\n+  \"context_servers\""),
        "{shown}"
    );
    assert!(shown.contains("zed: would be installed"), "{shown}");
}
