//! The list of all parts of the program: CycloneDX, from what cargo resolved for it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use super::{Platform, Release, output};

pub(super) fn write(release: &Release) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
    cargo.arg(Platform::X64.target()).current_dir(&release.root);
    let metadata: Value =
        serde_json::from_slice(&output(&mut cargo)?).map_err(|error| format!("cargo metadata: {error}"))?;
    let parts = bill(&metadata, &release.version, release.date)?;
    let to = release.out.join(format!("outlast-{}.cdx.json", release.version));
    std::fs::write(&to, format!("{parts:#}\n")).map_err(|error| format!("{}: {error}", to.display()))
}

fn bill(metadata: &Value, version: &str, date: u64) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let program = packages.iter().find(|(_, package)| package["name"] == "outlast");
    let (program, _) = program.ok_or("there is no package outlast")?;
    // Only what is linked: neither what tests use nor what only builds.
    let linked = |node: &Value| -> Vec<String> {
        let is_linked = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        list(&node["deps"]).iter().filter(is_linked).map(|dep| text(&dep["pkg"])).collect()
    };
    let (mut seen, mut left) = (BTreeSet::new(), vec![program.clone()]);
    while let Some(id) = left.pop() {
        if seen.insert(id.clone()) {
            left.extend(nodes.get(&id).map(&linked).unwrap_or_default());
        }
    }
    let reference = |id: &String| {
        let package = packages.get(id).unwrap_or(&Value::Null);
        format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
    };
    let component = |id: &String| {
        let package = packages.get(id).unwrap_or(&Value::Null);
        let mut part = json!({
            "type": "library",
            "bom-ref": reference(id),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(id),
        });
        if let Some(licence) = package["license"].as_str() {
            part["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        part
    };
    let parts: Vec<Value> = seen.iter().filter(|id| *id != program).map(&component).collect();
    let needs: Vec<Value> = seen
        .iter()
        .map(|id| {
            let on: BTreeSet<String> =
                nodes.get(id).map(&linked).unwrap_or_default().iter().map(&reference).collect();
            json!({ "ref": reference(id), "dependsOn": on })
        })
        .collect();
    let mut whole = component(program);
    whole["type"] = json!("application");
    whole["version"] = json!(version);
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "timestamp": timestamp(date)?, "component": whole },
        "components": parts,
        "dependencies": needs,
    }))
}

fn timestamp(date: u64) -> Result<String, String> {
    let mut command = Command::new("date");
    command.args(["--utc", "--date", &format!("@{date}"), "+%Y-%m-%dT%H:%M:%SZ"]);
    Ok(String::from_utf8_lossy(&output(&mut command)?).trim().to_owned())
}
