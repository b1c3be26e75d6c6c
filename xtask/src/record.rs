//! Runs a real program as a job and keeps what it printed, for the tests of the fold.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::recipe::{self, Step};

/// The largest recording: small enough to be read in a review.
const MAX_RECORDING_BYTES: u64 = 50 << 10;
/// How long a step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

type Done<T = ()> = Result<T, String>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Every recipe again.
pub(crate) fn all() -> Done {
    let folders = std::fs::read_dir(repository().join("recordings")).map_err(said("recordings"))?;
    let mut names: Vec<String> = folders
        .flatten()
        .filter(|entry| entry.path().join("recipe").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.iter().try_for_each(|name| again(name))
}

/// One recipe again.
pub(crate) fn again(name: &str) -> Done {
    let folder = repository().join("recordings").join(name);
    let text = std::fs::read_to_string(folder.join("recipe")).map_err(|_| {
        format!("there is no recordings/{name}/recipe; write one, or give a command after --")
    })?;
    make(name, &folder, &text)
}

/// A recording of a command that needs no typing.
pub(crate) fn new(name: &str, command: &[&str]) -> Done {
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Err(format!("{name:?}: a recording's name has small letters, digits and dashes"));
    }
    let folder = repository().join("recordings").join(name);
    make(name, &folder, &format!("size 80x24\nrun {}\n", command.join(" ")))
}

fn make(name: &str, folder: &Path, recipe: &str) -> Done {
    let steps = recipe::parse(recipe)?;
    let studio = Studio::new()?;
    let job = studio.perform(&steps)?;
    let log = std::fs::metadata(job.join("output.log")).map_err(said("output.log"))?.len();
    if log > MAX_RECORDING_BYTES {
        return Err(format!(
            "{name}: {log} bytes are too many for a recording; at most {MAX_RECORDING_BYTES} are allowed"
        ));
    }
    std::fs::create_dir_all(folder).map_err(said(name))?;
    let copies = [
        ("output.log", "input.bin"),
        ("timing", "timing"),
        ("screen.txt", "screen.txt"),
        ("stdout.txt", "lines.txt"),
    ];
    for (from, to) in copies {
        std::fs::copy(job.join(from), folder.join(to)).map_err(said(to))?;
    }
    let info = std::fs::read_to_string(job.join("info.json")).map_err(said("info.json"))?;
    let info = neutral(&serde_json::from_str(&info).map_err(said("info.json"))?);
    std::fs::write(folder.join("info.json"), format!("{info:#}\n")).map_err(said("info.json"))?;
    std::fs::write(folder.join("recipe"), recipe).map_err(said("recipe"))?;
    println!("recordings/{name}: {log} bytes");
    Ok(())
}

fn said<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// What a test needs of a record, and nothing of the machine it was made on.
fn neutral(info: &Value) -> Value {
    json!({
        "format": info["format"],
        "command": info["command"],
        "streams": info["streams"],
        "started_size": info["started_size"],
        "cwd": "/home/user",
        "outcome": info["outcome"], "code": info["code"],
    })
}

/// A home and a folder that are gone afterwards.
struct Studio {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Studio {
    /// Builds the program and the fixtures that recipes may call.
    fn new() -> Done<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--quiet", "--package", "outlast", "--bins", "--examples"];
        let built = Command::new(cargo).args(build).current_dir(repository()).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("the program does not build".into());
        }
        // This program runs from the folder that it was built into, and so does the other.
        let own = std::env::current_exe().map_err(said("this program"))?;
        let folder = tempfile::tempdir().map_err(said("a folder"))?;
        std::fs::create_dir(folder.path().join("user")).map_err(said("a folder"))?;
        Ok(Self { folder, program: own.with_file_name("outlast") })
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    /// Calls the program; its answer as JSON.
    fn call(&self, args: &[&str]) -> Done<Value> {
        let path = std::env::var("PATH").unwrap_or_default();
        let fixtures = self.program.with_file_name("examples");
        let ran = Command::new(&self.program)
            .arg("--json")
            .args(args)
            .env_clear()
            .env("PATH", format!("{}:{path}", fixtures.display()))
            .env("HOME", self.work())
            .env("LANG", "C.UTF-8")
            .env("OUTLAST_HOME", self.folder.path().join("home"))
            .env("OUTLAST_SESSION", "recording")
            .current_dir(self.work())
            .output()
            .map_err(said("the program"))?;
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let complaint = || format!("{args:?}: {text}{}", String::from_utf8_lossy(&ran.stderr));
        if !ran.status.success() {
            return Err(complaint());
        }
        if text.trim().is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_str(&text).map_err(|_| complaint())
        }
    }

    /// Does the steps, waits for the end, and returns the job's folder.
    fn perform(&self, steps: &[Step]) -> Done<PathBuf> {
        let mut size = "80x24";
        let mut job = None;
        for step in steps {
            match step {
                Step::Size(cells) => size = cells,
                Step::File(name, text) => {
                    std::fs::write(self.work().join(name), text).map_err(said(name))?;
                }
                Step::Run(command) => {
                    let started = self.call(&["run", "-d", "--size", size, "--", "sh", "-c", command])?;
                    job = Some(started["handle"].to_string());
                }
                step => self.act(job.as_deref().ok_or("the recipe has to `run` something first")?, step)?,
            }
        }
        let job = job.ok_or("the recipe does not `run` anything")?;
        self.call(&["wait", &job, "--exit", "--deadline", "30s"])?;
        Ok(self.folder.path().join("home/jobs").join(job))
    }

    fn act(&self, job: &str, step: &Step) -> Done {
        match step {
            Step::Wait(text) => return self.wait(job, text),
            Step::Type(text) => self.call(&["send", job, "--no-wait", "--no-newline", text])?,
            Step::Line(text) => self.call(&["send", job, "--no-wait", text])?,
            Step::Key(key) => self.call(&["send", job, "--no-wait", "--key", key])?,
            Step::Resize(size) => self.call(&["resize", job, size])?,
            Step::Size(_) | Step::File(..) | Step::Run(_) => Value::Null,
        };
        Ok(())
    }

    /// Until a text is on the screen.
    fn wait(&self, job: &str, text: &str) -> Done {
        let until = Instant::now() + STEP_TIMEOUT;
        loop {
            let screen = self.call(&["screen", job])?;
            let rows = screen["rows"].as_array().cloned().unwrap_or_default();
            if rows.iter().any(|row| row.as_str().is_some_and(|row| row.contains(text))) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("{text:?} does not come on the screen: {screen:#}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        let jobs = self.call(&["jobs", "--all", "--running"]).unwrap_or_default();
        for job in jobs["jobs"].as_array().into_iter().flatten() {
            let _ = self.call(&["kill", &job["handle"].to_string()]);
        }
    }
}
