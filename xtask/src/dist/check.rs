//! Installs every package in an empty prefix, as a user would, and runs the first lines of the README with what came of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::tree::file_ending;
use super::{Release, agents, empty, emulated, output, scratch_root, texts};

/// A check: what it is called, and what it does in an empty folder of its own.
type Check = (&'static str, fn(&Release, &Path) -> Result<(), String>);

/// What can be tried with any binary.
const CHECKS: [Check; 8] = [
    ("sums", sums),
    ("tarball", tarball),
    ("shell installer", installer),
    ("deb", deb),
    ("npm", npm),
    ("pip", pip),
    ("mcpb", mcpb),
    ("plugins", plugins),
];

/// What only a static binary can do.
const OF_STATIC: [Check; 2] =
    [("nothing but busybox", scratch_root::check), ("other machines, emulated", emulated::check)];

pub(super) fn run(release: &Release) -> Result<(), String> {
    let scratch = tempfile::Builder::new().prefix("outlast-dist-check-").tempdir();
    let scratch = scratch.map_err(|error| error.to_string())?;
    let mut failed = 0;
    let of_static = OF_STATIC.into_iter().filter(|_| !release.is_debug);
    let checks: Vec<Check> = CHECKS.into_iter().chain(of_static).collect();
    for (name, check) in &checks {
        let folder = scratch.path().join(name.replace(' ', "-"));
        empty(&folder)?;
        let began = Instant::now();
        match check(release, &folder) {
            Ok(()) => println!("ok   {name} ({:.1} s)", began.elapsed().as_secs_f32()),
            Err(why) => {
                failed += 1;
                println!("FAIL {name}: {why}");
            }
        }
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    if failed == 0 { Ok(()) } else { Err("packages that do not work".into()) }
}

/// Every agent that `outlast install` knows.
const AGENTS: [&str; 13] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "cursor",
    "vscode",
    "zed",
    "windsurf",
    "copilot",
    "qwen",
    "amp",
    "crush",
    "claude-desktop",
];

/// What the README shows first: a job, whose output is that of the command; and which agents there are.
fn first_lines(program: &Path, folder: &Path) -> Result<(), String> {
    let say = |error: std::io::Error| format!("{}: {error}", folder.display());
    let home = folder.join("jobs");
    let user = folder.join("user");
    std::fs::create_dir_all(&user).map_err(say)?;
    let ask = |words: &[&str]| {
        let mut command = Command::new(program);
        command.arg("--home").arg(&home).args(words);
        command.env("HOME", &user).env_remove("XDG_CONFIG_HOME").env_remove("OUTLAST_HOME");
        output(&mut command).map(|said| String::from_utf8_lossy(&said).replace('\r', ""))
    };
    let said = ask(&["run", "echo hello; sleep 1; echo done"])?;
    expect("run", &said, "hello\ndone\n")?;
    let said = ask(&["--json", "run", "-d", "sleep 600"])?;
    let started: Value = serde_json::from_str(&said).map_err(|error| format!("{said}: {error}"))?;
    let job = started["handle"].to_string();
    ask(&["kill", &job])?;
    for agent in AGENTS {
        let said = ask(&["--json", "install", "--client", agent, "--no-command"])?;
        let done: Value = serde_json::from_str(&said).map_err(|error| format!("{said}: {error}"))?;
        // What is installed must be this package's program, and not one that happens to be on the machine.
        let file = done["file"].as_str().ok_or_else(|| format!("install {agent} said {said}"))?;
        let settings = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        if !file.starts_with(&*user.to_string_lossy()) || !settings.contains(&*name) {
            return Err(format!("install {agent} wrote {file}: {settings}"));
        }
    }
    let settings = std::fs::read_to_string(user.join(".claude.json")).map_err(say)?;
    let settings: Value = serde_json::from_str(&settings).map_err(|error| error.to_string())?;
    let server = &settings["mcpServers"]["outlast"];
    let mut command = Command::new(server["command"].as_str().unwrap_or_default());
    command.args(server["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
    agents::converse(command, &["tools/list"]).map(drop)
}

pub(super) fn expect(what: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: wanted {wanted:?}, found {found:?}")) }
}

fn version(release: &Release, program: &Path) -> Result<(), String> {
    let said = output(Command::new(program).arg("--version"))?;
    expect("--version", String::from_utf8_lossy(&said).trim(), &format!("outlast {}", release.version))
}

fn sums(release: &Release, _: &Path) -> Result<(), String> {
    let mut command = Command::new("sha256sum");
    command.args(["--check", "--quiet", "--strict", texts::SUMS]).current_dir(&release.out);
    output(&mut command).map(drop)
}

/// The ends of names of the packages for this machine.
fn here(release: &Release) -> Result<super::Platform, String> {
    let here = release.binaries.iter().find(|binary| binary.platform.is_here());
    here.map(|binary| binary.platform).ok_or("nothing was built for this machine".into())
}

fn tarball(release: &Release, folder: &Path) -> Result<(), String> {
    let file = file_ending(&release.out, &format!("-{}-linux.tar.gz", here(release)?.machine()))?;
    output(Command::new("tar").arg("-xzf").arg(&file).args(["--strip-components", "1"]).current_dir(folder))?;
    version(release, &folder.join("bin/outlast"))?;
    first_lines(&folder.join("bin/outlast"), folder)?;
    let mut man = Command::new("man");
    man.arg(folder.join("share/man/man1/outlast-run.1")).env("MANPAGER", "cat").env("MANWIDTH", "80");
    let page = String::from_utf8_lossy(&output(&mut man)?).into_owned();
    if page.contains("outlast") { Ok(()) } else { Err(format!("the man page is {page:?}")) }
}

fn installer(release: &Release, folder: &Path) -> Result<(), String> {
    let prefix = folder.join("prefix");
    let mut sh = Command::new("sh");
    sh.arg(release.out.join("install.sh"));
    sh.env("OUTLAST_PREFIX", &prefix).env("OUTLAST_RELEASES", format!("file://{}", release.out.display()));
    output(&mut sh)?;
    version(release, &prefix.join("bin/outlast"))?;
    // A tarball that is not the one of the sums is refused.
    let wrong = folder.join("wrong");
    empty(&wrong)?;
    let tarball = file_ending(&release.out, &format!("-{}-linux.tar.gz", here(release)?.machine()))?;
    let name = tarball.file_name().unwrap_or_default();
    let put = std::fs::write(wrong.join(name), "not it")
        .and_then(|()| std::fs::copy(release.out.join(texts::SUMS), wrong.join(texts::SUMS)));
    put.map_err(|error| error.to_string())?;
    let mut sh = Command::new("sh");
    sh.arg(release.out.join("install.sh"));
    sh.env("OUTLAST_PREFIX", folder.join("none"))
        .env("OUTLAST_RELEASES", format!("file://{}", wrong.display()));
    match output(&mut sh) {
        Err(said) if said.contains("nothing was installed") => Ok(()),
        Err(said) => Err(said),
        Ok(_) => Err("a wrong tarball was installed".into()),
    }
}

fn deb(release: &Release, folder: &Path) -> Result<(), String> {
    let file = file_ending(&release.out, &format!("_{}.deb", here(release)?.debian()))?;
    let records = folder.join("var/lib/dpkg");
    for name in ["info", "updates"] {
        std::fs::create_dir_all(records.join(name)).map_err(|error| error.to_string())?;
    }
    std::fs::write(records.join("status"), "").map_err(|error| error.to_string())?;
    let dpkg = || {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--instdir={}", folder.display())).arg(format!("--admindir={}", records.display()));
        dpkg.args(["--force-not-root", "--force-script-chrootless", "--log=/dev/null"]);
        dpkg
    };
    output(dpkg().arg("--install").arg(&file))?;
    let program = folder.join("usr/bin/outlast");
    version(release, &program)?;
    first_lines(&program, folder)?;
    output(dpkg().args(["--remove", "outlast"]))?;
    if folder.join("usr").exists() {
        return Err("something is left in usr once it is removed".into());
    }
    // What the debug build is good for is not what lintian looks at.
    if release.is_debug { Ok(()) } else { lintian(&file) }
}

fn lintian(file: &Path) -> Result<(), String> {
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--no-tag-display-limit", "--allow-root"]).arg(file);
    output(&mut lintian).map(drop)
}

fn npm(release: &Release, folder: &Path) -> Result<(), String> {
    let prefix = folder.join("prefix");
    let mut npm = Command::new("npm");
    npm.args(["install", "--global", "--ignore-scripts", "--no-audit", "--no-fund", "--offline", "--prefix"]);
    npm.arg(&prefix).arg(release.out.join(format!(
        "outlast-linux-{}-{}.tgz",
        here(release)?.node(),
        release.version
    )));
    npm.arg(release.out.join(format!("outlast-{}.tgz", release.version)));
    npm.env("npm_config_cache", folder.join("cache")).env("npm_config_update_notifier", "false");
    output(&mut npm)?;
    version(release, &prefix.join("bin/outlast"))?;
    first_lines(&prefix.join("bin/outlast"), folder)?;
    // The client in the same package finds the program beside it.
    let client = prefix.join("lib/node_modules/outlast/lib/index.js");
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval"]).arg(format!(
        "import {{ Outlast }} from {client:?};
         const outlast = new Outlast();
         const job = await outlast.run('exit 5');
         console.log((await job.result()).code);
         await outlast.close();"
    ));
    node.env("OUTLAST_HOME", folder.join("jobs"));
    expect("the client", String::from_utf8_lossy(&output(node.env_remove("OUTLAST_PROGRAM"))?).trim(), "5")
}

fn pip(release: &Release, folder: &Path) -> Result<(), String> {
    let wheel = file_ending(&release.out, &format!("_{}.whl", here(release)?.machine()))?;
    let bin = python(&folder.join("venv"))?;
    let mut pip = Command::new(bin.join("pip"));
    pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(&wheel);
    output(&mut pip)?;
    version(release, &bin.join("outlast"))?;
    first_lines(&bin.join("outlast"), folder)?;
    let mut python = Command::new(bin.join("python"));
    let client = "import outlast, outlast.sync\nwith outlast.sync.Outlast() as o: print(outlast.__version__, o.run('exit 5').result().code)";
    python.args(["-c", client]).env("OUTLAST_HOME", folder.join("jobs")).env_remove("OUTLAST_PROGRAM");
    let said = output(&mut python)?;
    expect("the client", String::from_utf8_lossy(&said).trim(), &format!("{} 5", release.version))?;
    output(Command::new(bin.join("pip")).args(["uninstall", "--yes", "--quiet", "outlast"]))?;
    if bin.join("outlast").exists() { Err("the program is left".into()) } else { Ok(()) }
}

/// An empty environment of Python; where its programs are.
fn python(folder: &Path) -> Result<PathBuf, String> {
    output(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    Ok(folder.join("bin"))
}

fn mcpb(release: &Release, folder: &Path) -> Result<(), String> {
    let file = file_ending(&release.out, &format!("-linux-{}.mcpb", here(release)?.node()))?;
    output(Command::new("unzip").arg("-q").arg(&file).current_dir(folder))?;
    let manifest =
        std::fs::read_to_string(folder.join("manifest.json")).map_err(|error| error.to_string())?;
    let manifest: Value = serde_json::from_str(&manifest).map_err(|error| error.to_string())?;
    let config = &manifest["server"]["mcp_config"];
    let here =
        |text: &Value| text.as_str().unwrap_or_default().replace("${__dirname}", &folder.to_string_lossy());
    let mut server = Command::new(here(&config["command"]));
    server.args(config["args"].as_array().into_iter().flatten().map(here));
    server.env("OUTLAST_HOME", folder.join("jobs"));
    agents::converse(server, &["tools/list"]).map(drop)?;
    first_lines(&folder.join("server/outlast"), folder)
}

/// The plugins are there for every agent, and their settings name a server that answers.
fn plugins(release: &Release, folder: &Path) -> Result<(), String> {
    let file = release.out.join(format!("outlast-plugins-{}.tar.gz", release.version));
    output(Command::new("tar").arg("-xzf").arg(&file).args(["--strip-components", "1"]).current_dir(folder))?;
    for (client, file) in [
        ("claude", "outlast/.mcp.json"),
        ("codex", "outlast/.mcp.json"),
        ("gemini", "outlast/gemini-extension.json"),
    ] {
        let path = folder.join(client).join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let settings: Value = serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
        let server = &settings["mcpServers"]["outlast"];
        expect("command", server["command"].as_str().unwrap_or_default(), "outlast")?;
        let mut command = Command::new(&release.program);
        command.args(server["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
        command.env("OUTLAST_HOME", folder.join("jobs"));
        agents::converse(command, &["tools/list"])?;
    }
    Ok(())
}
