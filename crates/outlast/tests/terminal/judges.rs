//! Terminals that are not ours, for what a person sees: a shell in a tmux pane, and xterm.js and libvterm fed with
//! the same bytes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has, left_out};
use serde_json::Value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/terminal/screen.mjs");
const VTERM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/terminal/vterm.c");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/terminal");

/// A shell at its prompt in a pane, as `1 $ `: the number grows with each command.
pub(crate) struct Shell {
    socket: PathBuf,
    bytes: PathBuf,
    prompts: u32,
    /// At first.
    size: (u16, u16),
    /// Where in the bytes the window got another size.
    resizes: Vec<Resize>,
    home: PathBuf,
    program: PathBuf,
}

/// From this byte on, the window has this size.
#[derive(Clone, Copy)]
struct Resize {
    offset: u64,
    size: (u16, u16),
}

impl Resize {
    fn words(self) -> [String; 3] {
        [self.offset.to_string(), self.size.0.to_string(), self.size.1.to_string()]
    }
}

impl Shell {
    /// Starts it; none where there is no tmux, and the test says so.
    pub(crate) fn start(sandbox: &Sandbox) -> Option<Self> {
        Self::start_sized(sandbox, (80, 24))
    }

    /// The same, in a pane of a size (columns, rows).
    pub(crate) fn start_sized(sandbox: &Sandbox, size: (u16, u16)) -> Option<Self> {
        if !has("tmux") {
            return None;
        }
        let bin = sandbox.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(sandbox.program(), bin.join("outlast")).unwrap();
        let config = sandbox.root().join("tmux.conf");
        std::fs::write(&config, "set -g history-limit 50000\n").unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Self {
            socket: sandbox.root().join("tmux"),
            bytes: sandbox.root().join("bytes"),
            prompts: 0,
            size,
            resizes: Vec::new(),
            home: sandbox.home().to_owned(),
            program: sandbox.program().to_owned(),
        };
        // It waits until somebody listens: xterm.js gets to see all that tmux sees.
        let line = r"read go; PS1='\# $ ' exec bash --norc --noprofile -i";
        let mut tmux = shell.command();
        let (cols, rows) = (size.0.to_string(), size.1.to_string());
        tmux.arg("-f").arg(&config).args(["new-session", "-d", "-x", &cols, "-y", &rows, "bash", "-c", line]);
        tmux.env("OUTLAST_HOME", sandbox.home()).env("OUTLAST_SESSION", "person").env("PATH", path);
        tmux.env("HOME", sandbox.root().join("user")).env("HISTFILE", "").env("LS_COLORS", "di=01;34");
        let started = tmux.current_dir(sandbox.work()).output().unwrap();
        assert!(started.status.success(), "{started:?}");
        shell.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", shell.bytes.display())]);
        shell.press(&["Enter"]);
        shell.comes_back();
        Some(shell)
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX").env_remove("TMUX_PANE");
        tmux
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let ran = self.command().args(args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// The size that the window had at first, in columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Gives the window another size.
    pub(crate) fn resizes(&mut self, cols: u16, rows: u16) {
        let offset = std::fs::metadata(&self.bytes).unwrap().len();
        self.resizes.push(Resize { offset, size: (cols, rows) });
        self.tmux(&["resize-window", "-x", &cols.to_string(), "-y", &rows.to_string()]);
    }

    /// The size of a job's own terminal.
    pub(crate) fn job_size(&self, job: usize) -> (u16, u16) {
        let mut outlast = Command::new(&self.program);
        let ran =
            outlast.args(["--json", "screen", &job.to_string()]).env("OUTLAST_HOME", &self.home).output();
        let screen: Value = serde_json::from_slice(&ran.unwrap().stdout).unwrap();
        let number = |name: &str| u16::try_from(screen["size"][name].as_u64().unwrap()).unwrap();
        (number("cols"), number("rows"))
    }

    /// Whether a full-screen program has the screen.
    pub(crate) fn is_on_alternate_screen(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Presses keys by their tmux names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a line and presses Enter.
    pub(crate) fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.press(&["Enter"]);
    }

    /// All lines that tmux remembers, rows that wrapped joined, without the blank ones at the end.
    pub(crate) fn lines(&self) -> Vec<String> {
        trimmed(self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]).lines().map(str::to_owned).collect())
    }

    /// What the pane shows now.
    pub(crate) fn shows(&self) -> Vec<String> {
        self.tmux(&["capture-pane", "-p"]).lines().map(str::to_owned).collect()
    }

    /// Waits until the pane shows a text below the command that was typed last.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        let prompt = format!("{} $", self.prompts);
        eventually(text, TEST_TIMEOUT, || {
            let shown = self.shows();
            let command = shown.iter().rposition(|row| row.starts_with(&prompt));
            if shown[command.map_or(0, |row| row + 1)..].iter().any(|row| row.contains(text)) {
                Ok(())
            } else {
                Err(shown.join("\n"))
            }
        });
    }

    /// Waits until the terminal does not show what is typed.
    #[track_caller]
    pub(crate) fn waits_until_unseen(&self) {
        let path = self.tmux(&["display-message", "-p", "#{pane_tty}"]);
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let terminal = rustix::fs::open(path.trim(), flags, rustix::fs::Mode::empty()).unwrap();
        eventually("keys are not shown", TEST_TIMEOUT, || {
            let modes = rustix::termios::tcgetattr(&terminal).unwrap().local_modes;
            if modes.contains(rustix::termios::LocalModes::ECHO) { Err(modes) } else { Ok(()) }
        });
    }

    /// Waits until the shell asks for its next command, in a line of its own and with the cursor behind the
    /// prompt.
    #[track_caller]
    pub(crate) fn comes_back(&mut self) {
        self.prompts += 1;
        let prompt = format!("{} $", self.prompts);
        eventually("the shell's prompt", TEST_TIMEOUT, || {
            let shown = self.shows();
            let cursor = self.tmux(&["display-message", "-p", "#{cursor_y} #{cursor_x}"]);
            let (row, col) = cursor.trim().split_once(' ').unwrap();
            let at_prompt = shown[row.parse::<usize>().unwrap()] == prompt
                && col.parse::<usize>().unwrap() == prompt.len() + 1;
            if at_prompt { Ok(()) } else { Err(shown.join("\n")) }
        });
    }

    /// A prompt has come and gone: something was typed at it at once.
    pub(crate) fn has_passed_a_prompt(&mut self) {
        self.prompts += 1;
    }

    /// Types a command and waits until the shell asks for the next one.
    #[track_caller]
    pub(crate) fn calls(&mut self, line: &str) {
        self.enter(line);
        self.comes_back();
    }

    /// How a line that was typed looks, at the prompt of this number.
    pub(crate) fn typed(prompt: usize, line: &str) -> String {
        format!("{prompt} $ {line}")
    }

    /// Insists that all terminals have exactly these lines, from the first prompt to the last, which is
    /// added.
    #[track_caller]
    pub(crate) fn shows_all(&self, mut wanted: Vec<String>) {
        wanted.push(format!("{} $", self.prompts));
        // The first line is the one that let the shell begin.
        assert_same(&self.lines()[1..], &wanted, "tmux");
        if let Some(rows) = vterm(&self.bytes, self.size, &self.resizes) {
            // Where the size changes, no line of ours is as wide as the narrowest.
            let width = usize::from(self.size.0);
            let wrapped: Vec<String> = wanted.iter().flat_map(|line| wrap(line, width)).collect();
            assert_same(&rows[1..], &wrapped, "libvterm");
        }
        if let Some(shown) = xterm_resized(&self.bytes, self.size, &self.resizes) {
            assert!(!shown["alternate"].as_bool().unwrap());
            let lines = shown["lines"].as_array().unwrap();
            let lines = trimmed(lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect());
            assert_same(&lines[1..], &wanted, "xterm.js");
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}

fn trimmed(lines: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// What xterm.js makes of bytes; none where it is not installed.
pub(crate) fn xterm(bytes: &Path, size: (u16, u16)) -> Option<Value> {
    xterm_resized(bytes, size, &[])
}

fn xterm_resized(bytes: &Path, (cols, rows): (u16, u16), resizes: &[Resize]) -> Option<Value> {
    if !has("node") {
        return None;
    }
    if !Path::new(TOOLS).join("node_modules/@xterm/headless").is_dir() {
        left_out("xterm.js is not installed, so only tmux was asked", "cargo xtask test fetches it");
        return None;
    }
    let mut node = Command::new("node");
    node.args([SCRIPT, TOOLS, &cols.to_string(), &rows.to_string()])
        .args(resizes.iter().flat_map(|resize| resize.words()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    node.stdin.take().unwrap().write_all(&std::fs::read(bytes).unwrap()).unwrap();
    let ran = node.wait_with_output().unwrap();
    assert!(ran.status.success());
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

/// The rows that libvterm makes of bytes, with those that have scrolled away; none where it is not installed.
fn vterm(bytes: &Path, (cols, rows): (u16, u16), resizes: &[Resize]) -> Option<Vec<String>> {
    static JUDGE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let judge = JUDGE.get_or_init(compile_vterm).as_ref()?;
    let mut judge = Command::new(judge);
    judge.args([cols.to_string(), rows.to_string()]).arg(bytes);
    let ran = judge.args(resizes.iter().flat_map(|resize| resize.words())).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    Some(trimmed(String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned).collect()))
}

/// Compiles the program that asks it.
fn compile_vterm() -> Option<PathBuf> {
    if !has("gcc") {
        return None;
    }
    let folder = Path::new(TOOLS).with_file_name("vterm");
    std::fs::create_dir_all(&folder).unwrap();
    // Under a name of its own first: other tests may run the one that is there.
    let (program, fresh) = (folder.join("vterm"), folder.join(format!("vterm-{}", std::process::id())));
    let made = Command::new("gcc").arg("-o").arg(&fresh).arg(VTERM).arg("-lvterm").output().unwrap();
    if !made.status.success() {
        left_out("libvterm is not installed, so it was not asked", "apt-get install libvterm-dev");
        return None;
    }
    std::fs::rename(fresh, &program).unwrap();
    Some(program)
}

/// A line as the rows that it takes.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    letters.chunks(width).map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect()
}

#[track_caller]
fn assert_same(shown: &[String], wanted: &[String], judge: &str) {
    if let Some(at) = (0..shown.len().max(wanted.len())).find(|&at| shown.get(at) != wanted.get(at)) {
        let around = at.saturating_sub(3)..(at + 12).min(shown.len());
        panic!(
            "{judge} has {} lines, not {}; line {at} should be {:?}:\n{}",
            shown.len(),
            wanted.len(),
            wanted.get(at),
            shown[around].join("\n")
        );
    }
}
