//! A person at a terminal: a shell runs the program under test in it, and what the person sees is known.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use outlast_pty::{Command, Pty, SessionLeader, Size, Stdio};
use outlast_stream::{Config, FoldOutput, Pipeline, Snapshot};
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// What came to the person's terminal.
struct Seen {
    bytes: Vec<u8>,
    fold: Pipeline,
}

/// What the shell does: it calls the program, says how that ended, and stays.
const SHELL: &str = r#""$@"; printf '\n[back %s]\n' $?; read rest"#;

/// A person, a terminal, and the program in it.
pub(crate) struct Person {
    shell: Pid,
    master: Option<OwnedFd>,
    seen: Arc<Mutex<Seen>>,
    stop: Option<OwnedFd>,
    reader: Option<JoinHandle<()>>,
    before: Termios,
}

impl Person {
    /// Opens a terminal of a size (columns, rows) and calls the program in it.
    pub(crate) fn calls(sandbox: &Sandbox, (cols, rows): (u16, u16), args: &[&str]) -> Self {
        let pty = Pty::open(Size { cols, rows }).unwrap();
        let before = tcgetattr(&pty.master).unwrap();
        let fold = Pipeline::new(Config { size: outlast_stream::Size { cols, rows }, ..Config::default() });
        let seen = Arc::new(Mutex::new(Seen { bytes: Vec::new(), fold }));
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let reader = std::thread::spawn({
            let (seen, master) = (Arc::clone(&seen), pty.master.try_clone().unwrap());
            move || look(&master, &stopped, &seen)
        });
        let program = sandbox.program().as_os_str().to_owned();
        let home = sandbox.home().as_os_str().to_owned();
        let path = std::env::var_os("PATH").unwrap();
        let command = Command {
            argv: ["sh", "-c", SHELL, "sh"]
                .into_iter()
                .map(Into::into)
                .chain([program])
                .chain(args.iter().map(Into::into))
                .collect(),
            cwd: sandbox.work(),
            env: vec![
                ("PATH".into(), path),
                ("OUTLAST_HOME".into(), home),
                ("OUTLAST_SESSION".into(), "person".into()),
                ("HOME".into(), sandbox.root().join("user").into()),
                ("XDG_CONFIG_HOME".into(), sandbox.root().join("config").into()),
                ("TERM".into(), "xterm-256color".into()),
            ],
            stdio: Stdio::Terminal(pty.slave),
            session_leader: SessionLeader::Command,
            confinement: outlast_pty::spawn::Confinement::default(),
        };
        let shell = command.spawn().unwrap();
        Self { shell, master: Some(pty.master), seen, stop: Some(stop), reader: Some(reader), before }
    }

    /// Attaches to a job, and waits until the way out has been shown.
    #[track_caller]
    pub(crate) fn attaches(sandbox: &Sandbox, size: (u16, u16), job: u64, flags: &[&str]) -> Self {
        let job = job.to_string();
        let args: Vec<&str> = ["attach", &job].into_iter().chain(flags.iter().copied()).collect();
        let person = Self::calls(sandbox, size, &args);
        // The screen is there before it.
        eventually("the greeting", TEST_TIMEOUT, || {
            let got = person.got();
            if got.contains("[attached to job") { Ok(()) } else { Err(got) }
        });
        person
    }

    /// The program that the shell has called.
    #[track_caller]
    pub(crate) fn client(&self) -> Pid {
        *outlast_pty::procfs::children(self.shell).first().unwrap()
    }

    /// Everything that came, as text.
    pub(crate) fn got(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// What the person's terminal shows.
    pub(crate) fn screen(&self) -> Snapshot {
        self.seen.lock().unwrap().fold.screen()
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn sees_screen(&self, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
        eventually("what the person sees", TEST_TIMEOUT, || {
            let shot = self.screen();
            if wanted(&shot) { Ok(shot) } else { Err((shot.rows.join("\n"), shot.cursor)) }
        })
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> Snapshot {
        self.sees_screen(|shot| shot.rows.iter().any(|row| row.contains(text)))
    }

    /// Presses keys, as the bytes that they send.
    pub(crate) fn types(&self, keys: &[u8]) {
        let master = self.master.as_ref().unwrap();
        let mut left = keys;
        eventually("keys are taken", TEST_TIMEOUT, || match rustix::io::write(master, left) {
            Ok(n) => {
                left = &left[n..];
                if left.is_empty() { Ok(()) } else { Err(left.len()) }
            }
            // More than the program has read yet.
            Err(rustix::io::Errno::AGAIN) => Err(left.len()),
            Err(error) => panic!("{error}"),
        });
    }

    /// Pulls the window to another size.
    pub(crate) fn pulls_to(&self, cols: u16, rows: u16) {
        let mut seen = self.seen.lock().unwrap();
        seen.fold.resize(outlast_stream::Size { cols, rows }, &mut FoldOutput::default());
        outlast_pty::open::resize(self.master.as_ref().unwrap(), Size { cols, rows }).unwrap();
    }

    /// Waits until the shell has its terminal back; returns the exit code that it was told.
    #[track_caller]
    pub(crate) fn is_back_in_the_shell(&self) -> i32 {
        eventually("the shell has its terminal back", TEST_TIMEOUT, || {
            let got = self.got();
            let code = got.rsplit_once("[back ").and_then(|(_, rest)| rest.split_once(']')?.0.parse().ok());
            code.ok_or(got)
        })
    }

    /// `kill -9` of the client.
    pub(crate) fn client_is_killed(&self) {
        kill_process(self.client(), Signal::KILL).unwrap();
        assert_eq!(self.is_back_in_the_shell(), 128 + 9);
    }

    /// Insists that the terminal is as it was: its modes, its screen, its cursor.
    #[track_caller]
    pub(crate) fn terminal_is_restored(&self) {
        eventually("the terminal's modes are back", TEST_TIMEOUT, || {
            let now = tcgetattr(self.master.as_ref().unwrap()).unwrap();
            let same = now.local_modes == self.before.local_modes
                && now.input_modes == self.before.input_modes
                && now.output_modes == self.before.output_modes
                && now.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO);
            let shot = self.screen();
            let calm = !shot.alternate
                && shot.cursor.visible
                && !shot.modes.application_cursor
                && !shot.modes.bracketed_paste
                && !shot.modes.mouse_click
                && shot.modes.autowrap;
            if same && calm { Ok(()) } else { Err((now.local_modes, shot.rows, shot.modes)) }
        });
    }

    /// The terminal's window is closed.
    pub(crate) fn closes_the_window(&mut self) {
        self.stop = None;
        self.reader.take().unwrap().join().unwrap();
        self.master = None;
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.closes_the_window();
        }
        let _ = kill_process(self.shell, Signal::KILL);
        let _ = waitpid(Some(self.shell), WaitOptions::empty());
    }
}

/// Takes in what the program prints until the terminal is closed.
fn look(master: &OwnedFd, stopped: &OwnedFd, seen: &Mutex<Seen>) {
    let mut bytes = [0; 16 << 10];
    loop {
        let mut fds = [PollFd::new(master, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        match rustix::io::read(master, &mut bytes) {
            Ok(n @ 1..) => {
                let mut seen = seen.lock().unwrap();
                seen.bytes.extend_from_slice(&bytes[..n]);
                seen.fold.feed_more(&bytes[..n], &mut FoldOutput::default());
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
