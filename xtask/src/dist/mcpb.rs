//! The `.mcpb` bundle: a zip file with the program and a manifest, which desktop programs install with a click.

use serde_json::json;

use super::{Binary, Release};

pub(super) fn write(release: &Release, binary: &Binary) -> Result<(), String> {
    let tools: Vec<serde_json::Value> = super::agents::tools(release)?;
    let manifest = json!({
        "manifest_version": "0.3",
        "name": "outlast",
        "display_name": "Outlast",
        "version": release.version,
        "description": "Runs commands as jobs that outlast the call, and tells when they end, ask or listen",
        "author": { "name": "The Outlast developers", "url": "https://outlast.dev" },
        "homepage": "https://outlast.dev",
        "license": "MIT OR Apache-2.0",
        "keywords": ["shell", "terminal", "jobs"],
        "server": {
            "type": "binary",
            "entry_point": "server/outlast",
            "mcp_config": { "command": "${__dirname}/server/outlast", "args": ["mcp"], "env": {} },
        },
        "tools": tools,
        "compatibility": { "platforms": ["linux"] },
    });
    let tree = release.tree()?;
    tree.program("server/outlast", &binary.path)?;
    tree.file("manifest.json", format!("{manifest:#}\n"))?;
    for file in super::tarball::LICENCES {
        tree.file(file, release.text(file)?)?;
    }
    let name = format!("outlast-{}-linux-{}.mcpb", release.version, binary.platform.node());
    tree.zip(&release.out.join(name), "")
}
