//! Does what a recording says, with one program as the client and the same or another as the keeper.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::recorded::Action;
use crate::{Conversation, Sandbox};

/// A home with one job, and the clients of it.
#[derive(Debug)]
pub struct Stage {
    /// Before the sandbox, which ends everything that is left.
    server: Option<Conversation>,
    sandbox: Sandbox,
    client: PathBuf,
    fixture: String,
}

impl Stage {
    /// A stage whose job is kept by one program and asked by another.
    #[must_use]
    pub fn new(keeper: &Path, client: &Path, fixture: &str) -> Self {
        Self {
            server: None,
            sandbox: Sandbox::new(keeper),
            client: client.to_owned(),
            fixture: fixture.to_owned(),
        }
    }

    /// The home.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The folder of the job.
    #[must_use]
    pub fn job(&self) -> PathBuf {
        self.sandbox.job(1)
    }

    /// Does one thing, and returns what the client answered.
    pub fn perform(&mut self, action: &Action) -> Vec<String> {
        let answer = match action {
            Action::Comment(_) => String::new(),
            Action::Job(arguments) => {
                let job =
                    self.sandbox.start(arguments.iter().map(|word| word.replace("$FIXTURE", &self.fixture)));
                assert_eq!(job, 1, "a recording has one job");
                String::new()
            }
            Action::Until(pattern) => {
                self.sandbox.wait_for_text(1, pattern);
                String::new()
            }
            Action::Call(arguments) => self.sandbox.call_other(&self.client, arguments).run().text(),
            Action::Attach(arguments, keys) => {
                self.attach(arguments, keys);
                String::new()
            }
            Action::Tool(name, arguments) => self.tool(name, arguments).to_string(),
            Action::Raw(line) => {
                say(&self.job(), line);
                String::new()
            }
        };
        answer.lines().map(|line| self.without_paths(line)).collect()
    }

    /// A line without the names of folders that are different in every run.
    #[must_use]
    pub fn without_paths(&self, line: &str) -> String {
        line.replace(&*self.sandbox.root().to_string_lossy(), "/sandbox").replace(&self.fixture, "$FIXTURE")
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        let (sandbox, client) = (&self.sandbox, &self.client);
        let server = self.server.get_or_insert_with(|| {
            let serve = ["mcp", "--session", "test", "--own", "allow"];
            let mut server = sandbox.call_other(client, serve).converse();
            let info = json!({"name": "museum", "version": "1"});
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
            server.call("initialize", hello);
            server.notify("notifications/initialized", json!({}));
            server
        });
        server.call("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Attaches on a terminal: that of another job, in another home.
    fn attach(&self, arguments: &[String], keys: &str) {
        let terminal = Sandbox::new(&self.client);
        let home = self.sandbox.home().to_string_lossy().into_owned();
        let client = self.client.to_string_lossy().into_owned();
        let start = ["--size", "80x24", "--", &client, "--home", &home, "attach"];
        let viewer = terminal.start(start.into_iter().chain(arguments.iter().map(String::as_str)));
        terminal.wait_for_text(viewer, "attached to job");
        let viewer = viewer.to_string();
        for call in [
            &["send", &viewer, "--no-newline", "--no-wait", keys][..],
            &["wait", &viewer, "--quiet-for", "300ms", "--deadline", "30s"],
            &["send", &viewer, "--no-wait", "--key", "Ctrl-]"],
            &["wait", &viewer, "--deadline", "30s"],
        ] {
            drop(terminal.run(call).ok());
        }
    }
}

/// Says one line by hand, and waits for the greeting and the answer.
fn say(job: &Path, line: &str) {
    let mut stream = UnixStream::connect(job.join("keeper.sock")).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    assert_eq!(
        BufReader::new(stream).lines().take(2).filter(Result::is_ok).count(),
        2,
        "no answer to {line}"
    );
}
