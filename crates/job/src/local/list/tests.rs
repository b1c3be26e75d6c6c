//! A list is true whatever its index says: the index may be old, foreign, damaged or not to be written.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::Outlast;
use crate::lifecycle::{EndedBy, Outcome, Receipt, State};
use crate::registry::replace::Durability;
use crate::registry::{JobDir, claim, layout};
use crate::settings::Retention;
use crate::spec::KeeperSpec;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

struct Jobs {
    folder: tempfile::TempDir,
    outlast: Outlast,
}

impl Jobs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outlast = Outlast::at(folder.path()).unwrap();
        Self { folder, outlast }
    }

    /// A home with this many ended jobs, all of them in its index.
    fn indexed(count: usize) -> Self {
        let jobs = Self::new();
        for n in 0..count {
            jobs.ended(&format!("echo {n}"), &format!("first\r\nlast of {n}\r\n"));
        }
        jobs.wait_for_index();
        jobs
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join(layout::INDEX)
    }

    fn index_text(&self) -> String {
        std::fs::read_to_string(self.index()).unwrap_or_default()
    }

    fn ended(&self, command: &str, output: &str) -> Handle {
        let (dir, mut info, _lock) = self.claimed(command);
        info.state = State::ended(receipt());
        dir.write_info(&info, Durability::Process).unwrap();
        std::fs::write(dir.file(layout::OUTPUT), output).unwrap();
        info.handle
    }

    fn claimed(&self, command: &str) -> (JobDir, Info, claim::Lock) {
        let home = &self.outlast.local.home;
        let fresh = claim::Fresh::make(home).unwrap();
        fresh.claim(home, &KeeperSpec::shell(command), 1).unwrap()
    }

    /// Waits until a later change of any record would show.
    fn settle(&self) {
        for handle in self.outlast.local.home.handles() {
            let job = self.outlast.local.home.job(handle).unwrap();
            while !Mark::of_job(&job).is_some_and(|mark| mark.is_settled()) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Jobs go into the index as soon as a later change of theirs would show.
    fn wait_for_index(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        let all = self.outlast.local.list(false, |_| false, Duration::ZERO).len();
        while self.index_text().matches("\"handle\"").count() < all {
            assert!(Instant::now() < until, "not all of {all} are in the index: {}", self.index_text());
            std::thread::sleep(Duration::from_millis(10));
            let _ = std::fs::remove_file(self.index());
            let _ = self.outlast.local.list(false, |_| false, Duration::ZERO);
        }
    }

    fn commands(&self) -> Vec<String> {
        self.outlast
            .local
            .list(false, |_| false, Duration::ZERO)
            .into_iter()
            .map(|one| one.job.command)
            .collect()
    }

    fn last_line(&self, handle: Handle) -> String {
        let list = self.outlast.local.list(false, |_| false, Duration::ZERO);
        self.outlast.local.last_line(false, list.iter().find(|one| one.job.handle == handle).unwrap())
    }
}

fn receipt() -> Receipt {
    Receipt {
        outcome: Outcome::Exited { code: 0 },
        ended_at: 2,
        ended_by: EndedBy::Itself,
        left_behind: Vec::new(),
        used: None,
    }
}

#[test]
fn the_index_is_read_and_says_what_the_folders_say() {
    let jobs = Jobs::indexed(10);
    let facts = |outlast: &Outlast| -> Vec<(Summary, u64, String)> {
        let list = outlast.local.list(false, |_| false, Duration::ZERO);
        list.into_iter()
            .map(|one| (one.job.clone(), one.log_end, outlast.local.last_line(false, &one)))
            .collect()
    };
    let from_index = facts(&jobs.outlast);
    assert_eq!((from_index[3].1, from_index[3].2.as_str()), (18, "last of 3"));
    // What only the index says now is said: so it is what was read.
    let other = jobs.index_text().replace("last of 3", "LAST OF 3");
    std::fs::write(jobs.index(), other).unwrap();
    assert_eq!(jobs.last_line(Handle::new(4)), "LAST OF 3");
    std::fs::remove_file(jobs.index()).unwrap();
    assert_eq!(facts(&jobs.outlast), from_index);
}

#[test]
fn a_job_that_is_changed_removed_or_new_is_seen_at_once() {
    let jobs = Jobs::indexed(10);
    let job = jobs.outlast.local.home.job(Handle::new(2)).unwrap();
    let mut info = job.info().unwrap();
    info.command = "echo changed".into();
    job.write_info(&info, Durability::Process).unwrap();
    // In place, and not a byte longer.
    let record = jobs.outlast.local.home.job(Handle::new(3)).unwrap().file(layout::INFO);
    let text = std::fs::read_to_string(&record).unwrap().replace("echo 2", "echo X");
    std::fs::write(&record, text).unwrap();
    std::fs::remove_dir_all(jobs.outlast.local.home.job_path(Handle::new(4))).unwrap();
    jobs.ended("echo new", "");
    let expected = [0, 4, 5, 6, 7, 8, 9].map(|n| format!("echo {n}"));
    let mut expected = expected.to_vec();
    expected.splice(1..1, ["echo changed".into(), "echo X".into()]);
    expected.push("echo new".into());
    assert_eq!(jobs.commands(), expected);
    // Another job in a folder of the same number.
    std::fs::remove_dir_all(jobs.outlast.local.home.job_path(Handle::new(10))).unwrap();
    std::fs::rename(
        jobs.outlast.local.home.job_path(Handle::new(11)),
        jobs.outlast.local.home.job_path(Handle::new(10)),
    )
    .unwrap();
    expected.remove(expected.len() - 2);
    assert_eq!(jobs.commands(), expected);
}

#[test]
fn what_is_still_kept_or_left_something_behind_is_not_remembered() {
    let jobs = Jobs::indexed(8);
    let (kept, mut info, lock) = jobs.claimed("echo kept");
    info.state = State::ended(receipt());
    kept.write_info(&info, Durability::Process).unwrap();
    let left = jobs.outlast.local.home.job(jobs.ended("echo left", "")).unwrap();
    let mut info = left.info().unwrap();
    let process = Process { pid: 1, started: 0, program: "init".into(), ports: Vec::new() };
    info.state = State::ended(Receipt { left_behind: vec![process], ..receipt() });
    left.write_info(&info, Durability::Process).unwrap();
    jobs.settle();
    std::fs::remove_file(jobs.index()).unwrap();
    assert_eq!(jobs.commands().len(), 10);
    let index = jobs.index_text();
    assert!(
        index.contains("echo 7") && !index.contains("echo kept") && !index.contains("echo left"),
        "{index}"
    );
    // Its keeper is still at it: what it writes is seen.
    std::fs::write(kept.file(layout::OUTPUT), "more\n").unwrap();
    assert_eq!(jobs.last_line(kept.handle()), "more");
    drop(lock);
}

#[test]
fn no_secret_is_written_down_in_it() {
    let jobs = Jobs::indexed(8);
    jobs.ended(&format!("login {SECRET}"), "");
    let prints = jobs.ended("echo it", &format!("the key is {SECRET}\n"));
    jobs.settle();
    for masked in [false, true] {
        let outlast = Outlast::at(jobs.folder.path()).unwrap();
        std::fs::remove_file(jobs.index()).unwrap();
        let list = outlast.local.list(masked, |_| false, Duration::ZERO);
        assert_eq!(list[8].job.command.contains(SECRET), !masked, "{}", list[8].job.command);
        assert_eq!(outlast.local.last_line(masked, &list[9]).contains(SECRET), !masked);
        assert_eq!(list[9].job.handle, prints);
        let index = jobs.index_text();
        assert!(index.contains("echo 7") && !index.contains("ghp_") && !index.contains("echo it"), "{index}");
    }
}

#[test]
fn a_damaged_or_foreign_index_or_none_that_can_be_written_changes_nothing() {
    let jobs = Jobs::indexed(10);
    let (good, commands) = (jobs.index_text(), jobs.commands());
    let cut = good[..good.len() / 2].to_owned();
    let newer = good.replacen("outlast-index 1", "outlast-index 2", 1).replace("echo", "false");
    let unsorted = good.replacen("\n1 ", "\n7 ", 1).replace("echo", "false");
    for bad in [String::new(), cut, newer, unsorted, "\0".repeat(4096)] {
        std::fs::write(jobs.index(), bad).unwrap();
        assert_eq!(jobs.commands(), commands);
    }
    std::fs::remove_file(jobs.index()).unwrap();
    std::fs::create_dir(jobs.index()).unwrap();
    assert_eq!(jobs.commands(), commands);
}

#[test]
fn what_is_pruned_is_forgotten() {
    let jobs = Jobs::indexed(10);
    let keep = Retention::at_once(Duration::from_secs(1), 4, u64::MAX);
    crate::registry::sweep::sweep(&jobs.outlast.local.home, &keep, 3, false).unwrap();
    assert!(!jobs.index().exists());
    assert_eq!(jobs.commands().len(), 4);
}

#[test]
fn what_is_large_is_read_from_its_own_folder() {
    let jobs = Jobs::indexed(8);
    let long = format!("echo {}", "x".repeat(100_000));
    jobs.ended(&long, "");
    jobs.settle();
    std::fs::remove_file(jobs.index()).unwrap();
    assert_eq!(jobs.commands().last(), Some(&long));
    assert!(jobs.index_text().len() < 20_000);
}

/// What a start asks (does the same command run already?) must not cost more with every job that has ended.
#[test]
fn a_list_of_what_is_unfinished_opens_no_job_that_has_ended() {
    let jobs = Jobs::indexed(10);
    let unfinished = || -> Vec<String> {
        let list = jobs.outlast.local.list_unfinished(false, |_| false, Duration::ZERO);
        list.into_iter().map(|one| one.job.command).collect()
    };
    let (kept, mut info, lock) = jobs.claimed("echo kept");
    info.state = State::ended(receipt());
    kept.write_info(&info, Durability::Process).unwrap();
    assert_eq!(unfinished(), ["echo kept"]);
    jobs.ended("echo later", "");
    assert_eq!(unfinished(), ["echo kept"]);
    // These would be found to be lost if anybody looked: one was in the index, the other was seen to have ended.
    for handle in [3, 12].map(Handle::new) {
        let job = jobs.outlast.local.home.job(handle).unwrap();
        let info = Info { state: State::Starting, ..job.info().unwrap() };
        job.write_info(&info, Durability::Process).unwrap();
    }
    std::fs::remove_file(jobs.index()).unwrap();
    assert_eq!(unfinished(), ["echo kept"]);
    drop(lock);
    assert!(unfinished().is_empty());
    std::fs::remove_dir_all(jobs.outlast.local.home.job_path(Handle::new(5))).unwrap();
    assert!(unfinished().is_empty());
}
