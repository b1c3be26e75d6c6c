//! Runs real tools on small projects and keeps what they printed, for the readers of outcomes.
//!
//! `recordings/outcomes/SET.recipes` describes the runs of a set: the project's files, the command, and what is true of
//! the run. Each becomes `recordings/outcomes/SET/NAME.log`, the bytes that the job wrote, and `NAME.json`, the facts that
//! the tests compare with. Where a tool can report as JSON or XML, it is run once more in that form (`judge`), and a
//! recipe whose truth is not what the tool says of itself is refused.

mod judge;
mod recipe;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use self::recipe::Recipe;
use crate::test::tools::workspace;

/// The largest log of a run: small enough to be committed.
const MAX_LOG_BYTES: u64 = 60 << 10;
/// Where projects are built, so that no recording names a folder of the machine it was made on.
const STAGE: &str = "/tmp/outlast-outcomes";
/// Where the tools are, for the same reason.
const TOOLS: &str = "/tmp/outlast-outcome-tools";

type Done<T = ()> = Result<T, String>;

fn folder() -> PathBuf {
    workspace().join("recordings/outcomes")
}

/// Records a set, or only the named runs of it.
///
/// # Errors
/// When a recipe cannot be read, a tool cannot be installed, or a run is not what its recipe says.
pub(crate) fn run(set: &str, names: &[&str]) -> Done {
    let text = std::fs::read_to_string(folder().join(format!("{set}.recipes")))
        .map_err(|error| format!("recordings/outcomes/{set}.recipes: {error}"))?;
    let recipes = recipe::parse(&text)?;
    let studio = Studio::open()?;
    let mut wrong = Vec::new();
    for recipe in recipes.iter().filter(|recipe| names.is_empty() || names.contains(&recipe.name.as_str())) {
        match studio.record(set, recipe) {
            Ok(size) => println!("{set}/{}: {size} bytes", recipe.name),
            Err(why) => wrong.push(format!("{set}/{}: {why}", recipe.name)),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The tools, the built program, and a home that is gone afterwards.
struct Studio {
    tools: PathBuf,
    home: PathBuf,
    program: PathBuf,
}

impl Studio {
    fn open() -> Done<Self> {
        let tools = PathBuf::from(TOOLS);
        install(&tools)?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = own.with_file_name("outlast");
        if !program.is_file() {
            return Err("build the program first: cargo build -p outlast".into());
        }
        let home = Path::new(STAGE).join("home");
        let _ = std::fs::remove_dir_all(STAGE);
        std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        Ok(Self { tools, home, program })
    }

    /// A program that runs in the stage, with the tools and nothing of this user.
    fn command(&self, program: &Path) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let tools = self.tools.display();
        let own = std::env::var("HOME").unwrap_or_default();
        let or = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| format!("{own}/{usual}"));
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{tools}/node_modules/.bin:{tools}/py/bin:{path}"))
            .env("TOOLS", self.tools.as_os_str())
            .env("HOME", &self.home)
            .env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"))
            .env("CARGO_HOME", or("CARGO_HOME", ".cargo"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_NO_INDEX", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .env("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
            .env("NPM_CONFIG_FETCH_RETRIES", "0")
            .env("NPM_CONFIG_UPDATE_NOTIFIER", "false")
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.com")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.com")
            .env("LANG", "C.UTF-8")
            .env("OUTLAST_HOME", self.home.join("outlast"))
            .env("OUTLAST_SESSION", "recording")
            .stdin(Stdio::null());
        command
    }

    fn shell(&self, project: &Path, line: &str) -> Done<std::process::Output> {
        let mut shell = self.command(Path::new("sh"));
        shell.args(["-c", line]).current_dir(project).output().map_err(|error| error.to_string())
    }

    /// Writes the project and does what must be done before the run.
    fn set_up(&self, recipe: &Recipe) -> Done<PathBuf> {
        let project = Path::new(STAGE).join("project");
        let _ = std::fs::remove_dir_all(&project);
        std::fs::create_dir_all(&project).map_err(|error| error.to_string())?;
        for (name, text) in &recipe.files {
            let path = project.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
            }
            std::fs::write(path, text).map_err(|error| format!("{name}: {error}"))?;
        }
        for line in &recipe.setup {
            let done = self.shell(&project, line)?;
            if !done.status.success() {
                return Err(format!("setup {line}: {}", String::from_utf8_lossy(&done.stderr)));
            }
        }
        Ok(project)
    }

    fn record(&self, set: &str, recipe: &Recipe) -> Done<u64> {
        let judged = match &recipe.judge {
            None => None,
            Some((kind, line)) => {
                let project = self.set_up(recipe)?;
                let said = self.shell(&project, line)?;
                let truth = judge::counts(kind, &project, &said)?;
                for (word, count) in &truth {
                    let claimed = recipe.expect.get(word).copied().unwrap_or(0);
                    if claimed != *count {
                        return Err(format!("the recipe says {word}={claimed}, {kind} says {count}"));
                    }
                }
                Some(kind)
            }
        };
        let project = self.set_up(recipe)?;
        let mut job = self.command(&self.program);
        job.args(["--json", "run", "--timeout", "180s"]).current_dir(&project);
        if recipe.pipe {
            job.arg("--pipe");
        } else {
            job.args(["--size", &recipe.size]);
        }
        let said = job.args(["--", "sh", "-c", &recipe.run]).output().map_err(|error| error.to_string())?;
        let said: Value = serde_json::from_slice(&said.stdout)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&said.stderr)))?;
        let log =
            PathBuf::from(said["output_file"].as_str().ok_or_else(|| format!("it did not run: {said}"))?);
        let code = said["exit_code"].as_i64().ok_or_else(|| format!("it did not end: {said}"))?;
        if code != recipe.exit {
            let text = said["output"].as_str().unwrap_or_default();
            return Err(format!("exit code {code} instead of {}: {text}", recipe.exit));
        }
        let to = folder().join(set);
        std::fs::create_dir_all(&to).map_err(|error| error.to_string())?;
        let size = std::fs::copy(&log, to.join(format!("{}.log", recipe.name)))
            .map_err(|error| error.to_string())?;
        let mut all = size;
        if recipe.pipe {
            let errors = log.with_file_name("stderr.log");
            all += std::fs::copy(errors, to.join(format!("{}.stderr", recipe.name)))
                .map_err(|error| error.to_string())?;
        }
        if all > MAX_LOG_BYTES {
            return Err(format!("{all} bytes are too many; at most {MAX_LOG_BYTES} are allowed"));
        }
        let facts = json!({
            "command": recipe.run, "size": recipe.size, "pipe": recipe.pipe, "exit_code": code,
            "tool": recipe.tool, "counts": recipe.expect, "first_error": recipe.first, "judge": judged,
        });
        std::fs::write(to.join(format!("{}.json", recipe.name)), format!("{facts:#}\n"))
            .map_err(|error| error.to_string())?;
        Ok(all)
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(STAGE);
    }
}

/// Installs what `tools.txt` names, unless it is there.
fn install(tools: &Path) -> Done {
    let list = std::fs::read_to_string(folder().join("tools.txt")).map_err(|error| error.to_string())?;
    let packages = |kind: &str| -> Vec<String> {
        let line = list.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_default();
        line.split_whitespace().map(ToOwned::to_owned).collect()
    };
    let run = |program: &Path, arguments: &[String]| -> Done {
        let status = Command::new(program).args(arguments).current_dir(tools).stdout(Stdio::null()).status();
        if status.is_ok_and(|status| status.success()) {
            Ok(())
        } else {
            Err(format!("{program:?} {arguments:?} failed"))
        }
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    std::fs::create_dir_all(tools).map_err(|error| error.to_string())?;
    if !tools.join("node_modules").exists() {
        std::fs::write(tools.join("package.json"), "{\"private\": true}\n")
            .map_err(|error| error.to_string())?;
        let mut arguments = words(&["install", "--no-audit", "--no-fund"]);
        arguments.extend(packages("npm "));
        run(Path::new("npm"), &arguments)?;
    }
    if !tools.join("py").exists() {
        // Debian's own, so that no path of another installation is recorded.
        run(Path::new("/usr/bin/python3"), &words(&["-m", "venv", "py"]))?;
        let mut arguments = words(&["install", "-q"]);
        arguments.extend(packages("pip "));
        run(&tools.join("py/bin/pip"), &arguments)?;
    }
    Ok(())
}
