//! The npm packages: one a platform with the program, and `outlast` with a small launcher that depends on all of them optionally.

use serde_json::{Value, json};

use super::agents::SERVER_NAME;
use super::tarball::LICENCES;
use super::{Binary, Platform, Release};

/// What every `package.json` says.
fn package(release: &Release, name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "version": release.version,
        "description": description,
        "homepage": "https://outlast.dev",
        "license": "MIT OR Apache-2.0",
        "author": "The Outlast developers",
    })
}

pub(super) fn write_binary(release: &Release, binary: &Binary) -> Result<(), String> {
    let node = binary.platform.node();
    let mut about = package(
        release,
        &format!("@outlast/linux-{node}"),
        &format!("The program of outlast for Linux on {}", binary.platform.machine()),
    );
    // No `libc`: the program is static.
    about["os"] = json!(["linux"]);
    about["cpu"] = json!([node]);
    about["files"] = json!(["bin/outlast"]);
    // It is executed in place.
    about["preferUnplugged"] = json!(true);
    let tree = release.tree()?;
    tree.program("package/bin/outlast", &binary.path)?;
    tree.file("package/README.md", "The program of [outlast](https://outlast.dev) for one platform.\n")?;
    finish(release, &tree, &about, &format!("outlast-linux-{node}-{}.tgz", release.version))
}

pub(super) fn write_launcher(release: &Release) -> Result<(), String> {
    let mut about = package(release, "outlast", "A shell runtime for AI agents, and for people");
    let part = |platform: Platform| (format!("@outlast/linux-{}", platform.node()), json!(release.version));
    about["optionalDependencies"] = Platform::ALL.map(part).into_iter().collect();
    about["bin"] = json!({ "outlast": "bin/outlast.js" });
    about["engines"] = json!({ "node": ">=18" });
    about["mcpName"] = json!(SERVER_NAME);
    about["keywords"] = json!(["mcp", "shell", "terminal", "agents", "jobs"]);
    about["exports"] = json!({ "types": "./lib/index.d.ts", "default": "./lib/index.js" });
    let tree = release.tree()?;
    // The launcher is CommonJS for old Nodes, the client is not.
    tree.file("package/lib/package.json", "{ \"type\": \"module\" }\n")?;
    for file in ["index.js", "index.d.ts", "frames.js"] {
        tree.file(&format!("package/lib/{file}"), release.text(&format!("sdk/typescript/{file}"))?)?;
    }
    tree.script("package/bin/outlast.js", &release.text("packages/npm/outlast.js")?)?;
    tree.file("package/README.md", release.text("packages/npm/README.md")?)?;
    finish(release, &tree, &about, &format!("outlast-{}.tgz", release.version))
}

fn finish(release: &Release, tree: &super::Tree, about: &Value, name: &str) -> Result<(), String> {
    for file in LICENCES {
        tree.file(&format!("package/{file}"), release.text(file)?)?;
    }
    tree.file("package/package.json", format!("{about:#}\n"))?;
    tree.tar(&release.out.join(name), "package")
}
