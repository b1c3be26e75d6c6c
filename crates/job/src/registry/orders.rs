//! Orders from other machines, each carried out once however often it is asked for.
//!
//! A link can be cut between an order and its answer, and then the order is sent again under the same name. Each name is a file:
//! locked by the process that carries the order out, and with a line for how far that has got. A keeper notes its job there before it runs
//! the command, so that not even the death of who ordered it leaves a start in doubt.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use outlast_protocol::request::Answer;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::{Home, layout};
use crate::failure::{Failure, Kind};
use crate::spec::{CALLER_GONE, Handle};
use crate::wire::WireFailure;

/// How long an order is remembered: no client asks again after as long.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// How long a keeper whose orderer is gone may take to note its job.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const START_POLL: Duration = Duration::from_millis(20);
const MAX_NAME: usize = 64;

const BEGUN: &str = "begun";
const JOB: &str = "job ";
const VOID: &str = "void";

/// How far an order has got.
#[derive(Debug, PartialEq)]
enum Noted {
    /// Nobody has begun it.
    New,
    /// It was begun, and the process that did is gone.
    Begun,
    /// It has started this job.
    Job(Handle),
    /// Nobody may start it any more, and nobody has.
    Void,
    /// It was answered.
    Answered(serde_json::Value),
}

/// An order that this process carries out.
#[derive(Debug)]
struct Claim {
    file: File,
}

impl Claim {
    /// Waits for the process that carries it out.
    fn open(home: &Home, order: &str) -> Result<Self, Failure> {
        check(order)?;
        let broken = |error: Errno| Failure::system("cannot note the order", error);
        let dir = folder(home).map_err(broken)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(dir, order, flags, Mode::RUSR | Mode::WUSR).map_err(broken)?;
        flock(&file, FlockOperation::LockExclusive).map_err(broken)?;
        Ok(Self { file: File::from(file) })
    }

    fn noted(&mut self) -> Result<Noted, Failure> {
        let mut text = String::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_string(&mut text));
        read.map_err(|error| Failure::system("cannot read what is noted of the order", error))?;
        Ok(parse(&text))
    }

    fn note(&mut self, line: &str) -> Result<(), Failure> {
        let written = self
            .file
            .seek(SeekFrom::End(0))
            .and_then(|_| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| Failure::system("cannot note the order", error))
    }

    fn answered(&mut self, answer: &Result<Answer, Failure>) {
        let value = match answer {
            Ok(answer) => serde_json::json!({ "answer": answer }),
            Err(failure) => serde_json::json!({ "failure": WireFailure::from(failure.clone()) }),
        };
        // Should it not be noted, the outcome is unknown to who asks again: nothing is done twice.
        let _ = self.note(&value.to_string());
    }
}

/// Only whole lines count. Of a job and of the word that there may be none, whichever came first stands: both are appended, so a keeper
/// and who gives it up always agree. Otherwise the last word stands.
fn parse(text: &str) -> Noted {
    let mut noted = Noted::New;
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        if line == BEGUN {
            noted = Noted::Begun;
        } else if line == VOID {
            if !matches!(noted, Noted::Job(_) | Noted::Answered(_)) {
                noted = Noted::Void;
            }
        } else if let Some(job) = line.strip_prefix(JOB).and_then(|job| job.parse().ok()) {
            if noted != Noted::Void {
                noted = Noted::Job(Handle::new(job));
            }
        } else if let Ok(value) = serde_json::from_str(line) {
            noted = Noted::Answered(value);
        }
    }
    noted
}

fn folder(home: &Home) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(home.as_dir(), layout::ORDERS, flags, Mode::empty()) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    match mkdirat(home.as_dir(), layout::ORDERS, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    openat(home.as_dir(), layout::ORDERS, flags, Mode::empty())
}

/// Whether it can be an order's name.
///
/// # Errors
/// A usage failure.
pub(crate) fn check(order: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (8..=MAX_NAME).contains(&order.len()) && order.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::usage(format!("invalid name of an order: {order:?}"))
        .hint(format!("8 to {MAX_NAME} letters, digits, '-' or '_', never used before")))
}

/// Carries an order out unless that was done already: then it is answered as it was.
///
/// # Errors
/// Its own failure; [`Kind::OutcomeUnknown`] if the process that began it is gone.
pub(crate) fn once(
    home: &Home,
    order: &str,
    act: impl FnOnce() -> Result<Answer, Failure>,
) -> Result<Answer, Failure> {
    let mut claim = Claim::open(home, order)?;
    match claim.noted()? {
        Noted::New => {
            claim.note(BEGUN)?;
            let answer = act();
            claim.answered(&answer);
            answer
        }
        Noted::Answered(value) => again(value),
        Noted::Begun | Noted::Job(_) | Noted::Void => Err(unknown()),
    }
}

/// As [`once`], for a start: `find` gives the answer for a job that an earlier attempt has started.
///
/// # Errors
/// As [`once`]; but an order whose process is gone, and that no keeper has taken, is known not to have been started.
pub(crate) fn start_once(
    home: &Home,
    order: &str,
    act: impl FnOnce() -> Result<Answer, Failure>,
    find: impl FnOnce(Handle) -> Result<Answer, Failure>,
) -> Result<Answer, Failure> {
    let mut claim = Claim::open(home, order)?;
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        match claim.noted()? {
            Noted::New => {
                claim.note(BEGUN)?;
                let answer = act();
                claim.answered(&answer);
                return answer;
            }
            Noted::Answered(value) => return again(value),
            Noted::Job(handle) => {
                let answer = find(handle);
                claim.answered(&answer);
                return answer;
            }
            // A keeper may be on its way, whose orderer is gone.
            Noted::Begun if Instant::now() < give_up => std::thread::sleep(START_POLL),
            // Should one come after all, it finds this word before its own, and runs nothing.
            Noted::Begun => claim.note(VOID)?,
            Noted::Void => {
                let answer = Err(never_started());
                claim.answered(&answer);
                return answer;
            }
        }
    }
}

/// A keeper notes which job the order has become, before its command runs.
///
/// # Errors
/// When it cannot be written, or the order was given up meanwhile: then the command must not run.
pub(crate) fn note_job(home: &Home, order: &str, handle: Handle) -> std::io::Result<()> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder(home)?, order, flags, Mode::empty())?);
    file.write_all(format!("{JOB}{}\n", handle.number()).as_bytes())?;
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    match parse(&text) {
        Noted::Void => Err(std::io::Error::other(CALLER_GONE)),
        Noted::New | Noted::Begun | Noted::Job(_) | Noted::Answered(_) => Ok(()),
    }
}

/// Forgets orders that nobody asks for any more.
pub(crate) fn sweep(home: &Home) {
    let Ok(dir) = folder(home) else { return };
    let Ok(entries) = Dir::read_from(&dir) else { return };
    let Some(before) = SystemTime::now().checked_sub(KEPT_FOR) else { return };
    let before = before.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_old = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| u64::try_from(stat.st_mtime).is_ok_and(|at| at < before));
        if is_old && !name.to_bytes().starts_with(b".") {
            let _ = unlinkat(&dir, name, AtFlags::empty());
        }
    }
}

fn again(value: serde_json::Value) -> Result<Answer, Failure> {
    let broken = |error| Failure::system("cannot read what is noted of the order", error);
    match value {
        serde_json::Value::Object(mut noted) => match (noted.remove("answer"), noted.remove("failure")) {
            (Some(answer), _) => serde_json::from_value(answer).map_err(broken),
            (None, Some(failure)) => {
                Err(serde_json::from_value::<WireFailure>(failure).map_err(broken)?.into())
            }
            (None, None) => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

fn unknown() -> Failure {
    Failure::new(Kind::OutcomeUnknown, "the order was begun, and the process that carried it out is gone")
        .hint("look at the job before you ask for it again")
}

/// Nobody has run anything, and nobody will.
fn never_started() -> Failure {
    Failure::new(Kind::CannotStart, format!("nothing was started: {CALLER_GONE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        (folder, home)
    }

    #[test]
    fn an_order_is_carried_out_once_and_answered_again() {
        let (_folder, home) = home();
        let first = once(&home, "order-0001", || Ok(Answer::End(7)));
        assert!(matches!(first, Ok(Answer::End(7))), "{first:?}");
        let second = once(&home, "order-0001", || panic!("it was done twice"));
        assert!(matches!(second, Ok(Answer::End(7))), "{second:?}");
        let failed = once(&home, "order-0002", || Err(Failure::usage("no")));
        assert_eq!(failed.unwrap_err(), Failure::usage("no"));
        let again = once(&home, "order-0002", || panic!("it was done twice"));
        assert_eq!(again.unwrap_err().kind, Kind::Usage);
    }

    #[test]
    fn an_order_whose_carrier_died_is_not_carried_out_again() {
        let (_folder, home) = home();
        Claim::open(&home, "order-0001").unwrap().note(BEGUN).unwrap();
        let again = once(&home, "order-0001", || panic!("it was done twice"));
        assert_eq!(again.unwrap_err().kind, Kind::OutcomeUnknown);
        note_job(&home, "order-0001", Handle::new(3)).unwrap();
        let found = start_once(
            &home,
            "order-0001",
            || panic!("it was started twice"),
            |handle| Ok(Answer::Started(handle)),
        );
        assert!(matches!(found, Ok(Answer::Started(handle)) if handle == Handle::new(3)));
    }

    #[test]
    fn a_name_is_no_path() {
        for wrong in ["", "short", "../../../etc", "a/b/c/d/e", &"x".repeat(65)] {
            assert_eq!(check(wrong).unwrap_err().kind, Kind::Usage, "{wrong}");
        }
        assert_eq!(parse("begun\njob 1"), Noted::Begun, "half a line is not a word");
    }

    #[test]
    fn a_keeper_and_who_gives_an_order_up_agree_on_who_was_first() {
        let (_folder, home) = home();
        Claim::open(&home, "order-0001").unwrap().note(BEGUN).unwrap();
        Claim::open(&home, "order-0001").unwrap().note(VOID).unwrap();
        let late = note_job(&home, "order-0001", Handle::new(3)).unwrap_err();
        assert!(late.to_string().contains(CALLER_GONE), "{late}");
        let asked = start_once(&home, "order-0001", || panic!("started"), |_| panic!("found"));
        let failure = asked.unwrap_err();
        assert_eq!(failure.kind, Kind::CannotStart, "it is certain that nothing ran");
        assert_eq!(parse("begun\njob 3\nvoid\n"), Noted::Job(Handle::new(3)), "the keeper was first");
    }
}
