//! A wire between two machines that can be cut: a socket, and a relay of another home behind each connection to it.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_job::Outlast;
use outlast_remote::frame::{Decoder, MessageKind};
use outlast_remote::link::{Dial, LinkOptions, RelayLink};
use outlast_remote::message::Caller;
use outlast_testkit::Sandbox;

/// What both ends share.
#[derive(Default)]
struct Shared {
    connections: Mutex<Vec<UnixStream>>,
    relays: Mutex<Vec<Child>>,
    /// New connections are refused.
    down: AtomicBool,
    closed: AtomicBool,
    /// Bytes from the relay to the client.
    back: AtomicU64,
    cuts: AtomicU64,
    /// Requests and subscriptions of the client.
    asked: AtomicU64,
}

pub(crate) struct Wire {
    pub(crate) far: Sandbox,
    shared: Arc<Shared>,
    path: std::path::PathBuf,
}

impl Wire {
    pub(crate) fn new(far: Sandbox) -> Self {
        let shared = Arc::<Shared>::default();
        let path = far.root().join("wire");
        let listener = UnixListener::bind(&path).unwrap();
        let (program, ours) = (far.program().to_owned(), Arc::clone(&shared));
        let commands: Vec<(String, String)> = far
            .command(&program)
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.to_owned())))
            .collect();
        let work = far.work();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if ours.closed.load(Ordering::SeqCst) {
                    return;
                }
                if ours.down.load(Ordering::SeqCst) {
                    continue;
                }
                let mut relay = std::process::Command::new(&program)
                    .arg("relay")
                    .env_clear()
                    .envs(commands.iter().cloned())
                    .current_dir(&work)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let (input, output) = (relay.stdin.take().unwrap(), relay.stdout.take().unwrap());
                let (there, back) = (connection.try_clone().unwrap(), connection.try_clone().unwrap());
                let count = Arc::clone(&ours);
                std::thread::spawn(move || {
                    let mut decoder = Decoder::of_client();
                    pump(there, input, |bytes| {
                        decoder.push(bytes);
                        while let Ok(Some(frame)) = decoder.next_frame() {
                            let kind = MessageKind::of(frame.kind);
                            if matches!(kind, Some(MessageKind::Request | MessageKind::Subscribe))
                                && !frame.more
                            {
                                count.asked.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    });
                });
                let count = Arc::clone(&ours);
                std::thread::spawn(move || {
                    let end = back.try_clone().unwrap();
                    pump(output, back, |bytes| {
                        count.back.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                    });
                    let _ = end.shutdown(std::net::Shutdown::Both);
                });
                ours.connections.lock().unwrap().push(connection);
                let mut relays = ours.relays.lock().unwrap();
                relays.push(relay);
                relays.retain_mut(|relay| relay.try_wait().unwrap().is_none());
            }
        });
        Self { far, shared, path }
    }

    /// Cuts every connection in the middle of whatever it carries.
    pub(crate) fn cut(&self) {
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            if connection.shutdown(std::net::Shutdown::Both).is_ok() {
                self.shared.cuts.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Refuses new connections, or takes them again.
    pub(crate) fn down(&self, down: bool) {
        self.shared.down.store(down, Ordering::SeqCst);
        if down {
            self.cut();
        }
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many bytes have come back so far.
    pub(crate) fn bytes_back(&self) -> u64 {
        self.shared.back.load(Ordering::SeqCst)
    }

    /// How many requests and subscriptions have gone there so far.
    pub(crate) fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// The command that gives a pipe.
    pub(crate) fn command(&self) -> Vec<String> {
        ["socat", "STDIO", &format!("UNIX-CONNECT:{}", self.path.display())].map(ToOwned::to_owned).to_vec()
    }

    /// A machine that knows the far one as `gpu1`.
    pub(crate) fn near(&self, near: &Sandbox, patience: Duration, told: &Arc<Mutex<Vec<String>>>) -> Outlast {
        let told = Arc::clone(told);
        let link = RelayLink::new(LinkOptions {
            name: "gpu1".into(),
            dial: Dial::Command(self.command()),
            patience,
            caller: Caller::here(),
            notice: Some(Arc::new(move |text: &str| told.lock().unwrap().push(text.to_owned()))),
        });
        Outlast::at(near.home()).unwrap().kept_by(near.program()).with_host("gpu1".parse().unwrap(), link)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.cut();
        let _ = UnixStream::connect(&self.path);
        for relay in self.shared.relays.lock().unwrap().iter_mut() {
            let _ = relay.wait();
        }
    }
}

fn pump(mut from: impl Read, mut to: impl Write, mut sees: impl FnMut(&[u8])) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        sees(&bytes[..n]);
        if to.write_all(&bytes[..n]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
