//! How agents come to know the server: `server.json` for the MCP registry, and plugins. Plugins are written by the program itself,
//! which installs the same ones: `packages/plugin` is the source of all of them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Release;

/// The name in the MCP registry.
pub(super) const SERVER_NAME: &str = "dev.outlast/outlast";

/// The agents that have plugins.
pub(super) const WITH_PLUGINS: [&str; 3] = ["claude", "codex", "gemini"];

pub(super) fn write(release: &Release) -> Result<(), String> {
    let put = |name: &str, value: &Value| {
        let text = format!("{value:#}\n");
        std::fs::write(release.out.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    put("server.json", &server(release))?;
    let tree = release.tree()?;
    for client in WITH_PLUGINS {
        let folder = tree.path().join("outlast-plugins").join(client);
        release.ask(&["install", "--client", client, "--plugin-folder", &folder.to_string_lossy()])?;
    }
    tree.file("outlast-plugins/README.md", release.text("packages/plugin/README.md")?)?;
    tree.tar(&release.out.join(format!("outlast-plugins-{}.tar.gz", release.version)), "outlast-plugins")
}

/// The entry of the MCP registry.
fn server(release: &Release) -> Value {
    let Release { version, .. } = release;
    let package = |kind: &str, hint: &str| {
        json!({
            "registryType": kind,
            "identifier": "outlast",
            "version": version,
            "runtimeHint": hint,
            "transport": { "type": "stdio" },
            "packageArguments": [{ "type": "positional", "value": "mcp" }],
        })
    };
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": SERVER_NAME,
        "title": "Outlast",
        "description": "Runs commands as jobs that outlast the call, and tells when they end, ask or listen",
        "websiteUrl": "https://outlast.dev",
        "version": version,
        "packages": [package("npm", "npx"), package("pypi", "uvx")],
    })
}

/// The names and descriptions of the server's tools, as the program itself tells them.
pub(super) fn tools(release: &Release) -> Result<Vec<Value>, String> {
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(&release.program);
    command.arg("--home").arg(home.path().join("jobs")).arg("mcp");
    let answers = converse(command, &["tools/list"])?;
    let list = answers.first().and_then(|answer| answer["result"]["tools"].as_array());
    let list = list.ok_or_else(|| format!("no list of tools: {answers:?}"))?;
    let first_line =
        |text: &Value| text.as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned();
    Ok(list
        .iter()
        .map(|tool| json!({ "name": tool["name"], "description": first_line(&tool["description"]) }))
        .collect())
}

/// Opens a conversation with an MCP server, calls methods without parameters, and returns the answers.
pub(super) fn converse(mut command: Command, methods: &[&str]) -> Result<Vec<Value>, String> {
    let say = |error: std::io::Error| format!("the MCP server: {error}");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(say)?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the MCP server has no pipes".into());
    };
    let mut lines = BufReader::new(from).lines();
    let mut ask = |id: usize, method: &str, params: Value| -> Result<Value, String> {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(to, "{call}").map_err(say)?;
        loop {
            let line = lines.next().ok_or("the MCP server has ended")?.map_err(say)?;
            let answer: Value = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
            if answer["id"] == id {
                return Ok(answer);
            }
        }
    };
    let client = json!({ "name": "xtask", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let result = ask(0, "initialize", hello).and_then(|hello| {
        if hello["result"]["serverInfo"]["name"] != "outlast" {
            return Err(format!("an unexpected greeting: {hello}"));
        }
        methods.iter().enumerate().map(|(n, method)| ask(n + 1, method, json!({}))).collect()
    });
    drop(to);
    let _ = child.wait();
    result
}
