//! What the web view keeps, in a few small files of the home: who may come in. Everything else it asks for when it is needed.
//!
//! No secret is written down, only its hash: the files alone let nobody in. All of them are for the user
//! alone, and a file that is removed takes the right with it, at once and also while a server runs.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outlast_job::clock::now_ms;
use outlast_job::registry::Home;
use outlast_job::{Failure, Kind};
use rustix::fs::FlockOperation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How long a link from the command line gets somebody in.
const TICKET_MS: u64 = 10 * 60 * 1000;
/// How long a browser stays known.
const SESSION_MS: u64 = 7 * 24 * 3600 * 1000;
/// The most browsers that are known; the oldest goes first.
const MAX_SESSIONS: usize = 64;
/// The most shares, and how long one may last.
const MAX_SHARES: usize = 256;
const MAX_SHARE_MS: u64 = 30 * 24 * 3600 * 1000;
/// A file of ours is not longer.
const MAX_FILE: u64 = 4096;

/// The files.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A link by which others see the screen of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What it is revoked by.
    pub number: u64,
    /// The job.
    pub job: String,
    /// When it was made, in milliseconds since 1970.
    pub made_at: u64,
    /// Until when it counts.
    pub until: u64,
}

/// A browser that has come in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The hash of the key that its page has.
    key: String,
    made_at: u64,
    /// It came in by this share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<String>,
}

/// Where a server is, in the file whose lock it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// The address of its socket.
    pub(crate) socket: SocketAddr,
    /// As browsers reach it.
    pub(crate) address: String,
    pub(crate) read_only: bool,
}

/// What a browser is given when it comes in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

/// Who a browser is, by its session.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Owner,
    Guest(Share),
}

impl Store {
    /// The files of a home.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn open(home: &Home) -> Result<Self, Failure> {
        let folder = home.path().join("web");
        for made in ["", "tickets", "sessions", "shares"] {
            let path = if made.is_empty() { folder.clone() } else { folder.join(made) };
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => check_folder(&path)?,
                Err(error) => return Err(Failure::system(format!("cannot make {}", path.display()), error)),
            }
        }
        Ok(Self { folder })
    }

    /// The port that this home had last.
    pub(crate) fn port(&self) -> Option<u16> {
        read_text(&self.folder.join("port"))?.trim().parse().ok()
    }

    pub(crate) fn remember_port(&self, port: u16) -> Result<(), Failure> {
        write_file(&self.folder.join("port"), port.to_string().as_bytes())
    }

    /// Notes that a server runs, for as long as what is returned is kept; none when there is one already.
    pub(crate) fn begin_running(&self) -> Result<Option<File>, Failure> {
        let file = self.running_file(true)?;
        Ok(match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Some(file),
            Err(_) => None,
        })
    }

    pub(crate) fn say_running(file: &mut File, running: &Running) -> Result<(), Failure> {
        let text = serde_json::to_vec(running).unwrap_or_default();
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
        written.map_err(|error| Failure::system("cannot say where the server is", error))
    }

    /// The server that runs.
    pub(crate) fn running(&self) -> Option<Running> {
        let mut file = self.running_file(false).ok()?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let mut text = String::new();
        file.rewind().ok()?;
        Read::by_ref(&mut file).take(MAX_FILE).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn running_file(&self, makes: bool) -> Result<File, Failure> {
        let path = self.folder.join("running");
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(makes).truncate(false).mode(0o600).custom_flags(nofollow());
        open.open(&path).map_err(|error| Failure::system(format!("cannot use {}", path.display()), error))
    }

    /// A token by which one browser gets in, once.
    pub(crate) fn make_ticket(&self) -> Result<String, Failure> {
        let token = random()?;
        let until = now_ms() + TICKET_MS;
        self.sweep("tickets", |until: &u64| *until <= now_ms());
        self.write("tickets", &hash(&token), &until)?;
        Ok(token)
    }

    /// A browser signs in with a ticket. Removing the ticket is what uses it, so it counts once.
    pub(crate) fn use_ticket(&self, token: &str) -> Result<Option<Admitted>, Failure> {
        let name = hash(token);
        let Some(until) = self.read::<u64>("tickets", &name) else { return Ok(None) };
        let removed = std::fs::remove_file(self.folder.join("tickets").join(&name)).is_ok();
        if !removed || until <= now_ms() {
            return Ok(None);
        }
        self.admit(None).map(Some)
    }

    /// A browser comes in with a share.
    pub(crate) fn use_share(&self, token: &str) -> Result<Option<Admitted>, Failure> {
        let name = hash(token);
        if self.share(&name).is_none() {
            return Ok(None);
        }
        self.admit(Some(name)).map(Some)
    }

    fn admit(&self, share: Option<String>) -> Result<Admitted, Failure> {
        let (cookie, key) = (random()?, random()?);
        let made_at = now_ms();
        self.sweep("sessions", |session: &Session| session.made_at + SESSION_MS <= made_at);
        let mut sessions = self.all::<Session>("sessions");
        sessions.sort_by_key(|(_, session)| session.made_at);
        for (name, _) in sessions.iter().take((sessions.len() + 1).saturating_sub(MAX_SESSIONS)) {
            let _ = std::fs::remove_file(self.folder.join("sessions").join(name));
        }
        self.write("sessions", &hash(&cookie), &Session { key: hash(&key), made_at, share })?;
        Ok(Admitted { cookie, key })
    }

    /// Who has this cookie and this key: one without the other is nobody.
    pub(crate) fn known(&self, cookie: &str, key: &str) -> Option<Known> {
        let session: Session = self.read("sessions", &hash(cookie))?;
        // Both are hashes: how long the comparison takes tells nothing of the key.
        if session.key != hash(key) || session.made_at + SESSION_MS <= now_ms() {
            return None;
        }
        match &session.share {
            None => Some(Known::Owner),
            Some(name) => self.share(name).map(Known::Guest),
        }
    }

    /// Makes a share; returns its token too, which is written nowhere.
    ///
    /// # Errors
    /// Too long a time, too many shares, or files that cannot be written.
    pub fn make_share(&self, job: &str, ms: u64) -> Result<(Share, String), Failure> {
        if ms == 0 || ms > MAX_SHARE_MS {
            return Err(Failure::usage("a share lasts from 1 ms to 30 days").hint("for example: --for 1h"));
        }
        self.sweep("shares", |share: &Share| share.until <= now_ms());
        let shares = self.shares();
        if shares.len() >= MAX_SHARES {
            return Err(Failure::usage(format!("there are {MAX_SHARES} shares already"))
                .hint("revoke one: outlast web shares, then outlast web revoke NUMBER"));
        }
        let token = random()?;
        let number = shares.iter().map(|share| share.number).max().unwrap_or(0) + 1;
        let share = Share { number, job: job.to_owned(), made_at: now_ms(), until: now_ms() + ms };
        self.write("shares", &hash(&token), &share)?;
        Ok((share, token))
    }

    /// Shares that count.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut shares: Vec<Share> = self.all("shares").into_iter().map(|(_, share)| share).collect();
        shares.retain(|share: &Share| share.until > now_ms());
        shares.sort_by_key(|share| share.number);
        shares
    }

    /// Takes a share back: who came in by it sees nothing more.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn revoke(&self, number: u64) -> Result<Share, Failure> {
        let found = self.all::<Share>("shares").into_iter().find(|(_, share)| share.number == number);
        let Some((name, share)) = found else {
            return Err(Failure::new(Kind::Usage, format!("there is no share {number}"))
                .hint("see those that there are: outlast web shares"));
        };
        let path = self.folder.join("shares").join(name);
        std::fs::remove_file(&path)
            .map_err(|error| Failure::system(format!("cannot remove {}", path.display()), error))?;
        Ok(share)
    }

    fn share(&self, name: &str) -> Option<Share> {
        self.read::<Share>("shares", name).filter(|share| share.until > now_ms())
    }

    fn read<T: DeserializeOwned>(&self, kind: &str, name: &str) -> Option<T> {
        serde_json::from_str(&read_text(&self.folder.join(kind).join(name))?).ok()
    }

    fn write(&self, kind: &str, name: &str, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_vec(value).unwrap_or_default();
        write_file(&self.folder.join(kind).join(name), &text)
    }

    fn all<T: DeserializeOwned>(&self, kind: &str) -> Vec<(String, T)> {
        let Ok(entries) = std::fs::read_dir(self.folder.join(kind)) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| self.read(kind, &name).map(|value| (name, value))).collect()
    }

    fn sweep<T: DeserializeOwned>(&self, kind: &str, is_over: impl Fn(&T) -> bool) {
        for (name, value) in self.all::<T>(kind) {
            if is_over(&value) {
                let _ = std::fs::remove_file(self.folder.join(kind).join(name));
            }
        }
    }
}

/// A folder that others can write into could be given sessions by them.
fn check_folder(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(path)
        .map_err(|error| Failure::system(format!("cannot use {}", path.display()), error))?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if is_ours && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(Failure::new(Kind::BadHome, format!("{} is not a folder for you alone", path.display()))
        .hint("remove it, and start again: a new one is made"))
}

fn read_text(path: &Path) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(nofollow()).open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::system(format!("cannot write {}", path.display()), error);
    let fresh = path.with_extension(format!("new-{}", random()?));
    let mut open = OpenOptions::new();
    open.write(true).create_new(true).mode(0o600).custom_flags(nofollow());
    let mut file = open.open(&fresh).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written.map_err(failed)
}

fn nofollow() -> i32 {
    (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC).bits().cast_signed()
}

/// A name that a file can have, for what nobody may know.
pub(crate) fn hash(secret: &str) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, secret.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn random() -> Result<String, Failure> {
    let mut bytes = [0_u8; 32];
    outlast_job::system::random(&mut bytes)
        .map_err(|error| Failure::system("cannot get random numbers", error))?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let home = outlast_job::Outlast::at(&folder.path().join("home")).unwrap();
        let store = Store::open(home.home()).unwrap();
        (folder, store)
    }

    #[test]
    fn a_ticket_gets_one_browser_in() {
        let (_folder, store) = store();
        let ticket = store.make_ticket().unwrap();
        assert!(store.use_ticket("0000").unwrap().is_none());
        let admitted = store.use_ticket(&ticket).unwrap().unwrap();
        assert!(store.use_ticket(&ticket).unwrap().is_none(), "it is used up");
        assert!(matches!(store.known(&admitted.cookie, &admitted.key), Some(Known::Owner)));
        for (cookie, key) in [
            (admitted.cookie.as_str(), ""),
            ("", admitted.key.as_str()),
            (&admitted.key, &admitted.cookie),
            (&admitted.cookie, &admitted.cookie),
        ] {
            assert!(store.known(cookie, key).is_none(), "one without the other is nobody");
        }
    }

    #[test]
    fn a_share_that_is_revoked_or_over_shows_nothing() {
        let (_folder, store) = store();
        let (share, token) = store.make_share("3", 60_000).unwrap();
        let guest = store.use_share(&token).unwrap().unwrap();
        assert!(matches!(store.known(&guest.cookie, &guest.key), Some(Known::Guest(of)) if of == share));
        store.revoke(share.number).unwrap();
        assert!(store.known(&guest.cookie, &guest.key).is_none());
        assert!(store.use_share(&token).unwrap().is_none());
        let (_, short) = store.make_share("3", 1).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(store.use_share(&short).unwrap().is_none());
    }

    #[test]
    fn no_secret_is_in_any_file() {
        let (folder, store) = store();
        let ticket = store.make_ticket().unwrap();
        let admitted = store.use_ticket(&ticket).unwrap().unwrap();
        let other = store.make_ticket().unwrap();
        let (_, share) = store.make_share("3", 60_000).unwrap();
        let mut looked = 0;
        for kind in ["tickets", "sessions", "shares"] {
            for entry in std::fs::read_dir(folder.path().join("home/web").join(kind)).unwrap() {
                let path = entry.unwrap().path();
                let text = format!("{}{}", path.display(), std::fs::read_to_string(&path).unwrap());
                for secret in [&admitted.cookie, &admitted.key, &other, &share, &ticket] {
                    assert!(!text.contains(secret.as_str()), "{text}");
                }
                let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
                assert_eq!(mode & 0o777, 0o600, "{}", path.display());
                looked += 1;
            }
        }
        assert_eq!(looked, 3);
    }
}
