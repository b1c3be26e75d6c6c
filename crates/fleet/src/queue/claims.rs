//! Claims on the disk of a host: one file for each order that it has taken, until what became of it is known to the broker.
//!
//! A line is added for each step, and is on the disk before the step is taken: so a host that comes back knows whether an order can have
//! been started, whatever happened to it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use outlast_protocol::Failure;
use serde::{Deserialize, Serialize};

use super::Order;

const STARTING: &str = "starting ";
const JOB: &str = "job ";
/// Too short for the name of an order.
const BOOT: &str = ".boot";

/// What is known of a claim.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// The order.
    pub order: Order,
    /// Since which run of the machine it may have been started; none if it was not.
    pub starting_in: Option<String>,
    /// The job that it has become.
    pub job: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct First {
    order: Order,
}

/// The claims of a host.
#[derive(Clone, Debug)]
pub struct Claims {
    folder: PathBuf,
}

impl Claims {
    /// Below the folder of a node.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(node: &Path) -> Result<Self, Failure> {
        let folder = node.join("claims");
        std::fs::create_dir_all(&folder).map_err(|error| cannot(&folder, &error))?;
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// Notes that an order is about to be claimed. It survives this process, which is enough: after a crash of the machine, all orders
    /// are looked at.
    pub fn intend(&self, id: &str) {
        let _ = File::create(self.folder.join(format!(".{id}")));
    }

    /// It was not claimed after all, or is dealt with.
    pub fn forget_intent(&self, id: &str) {
        let _ = std::fs::remove_file(self.folder.join(format!(".{id}")));
    }

    /// Orders that an earlier process was about to claim.
    #[must_use]
    pub fn intents(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let name = |entry: std::fs::DirEntry| Some(entry.file_name().to_str()?.strip_prefix('.')?.to_owned());
        entries.filter_map(name).filter(|id| super::check_id(id).is_ok()).collect()
    }

    /// In which run of the machine all was dealt with last.
    #[must_use]
    pub fn boot(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join(BOOT)).ok()
    }

    /// All that earlier runs have left is dealt with.
    pub fn note_boot(&self, boot: &str) {
        // Should it not be noted, all is looked at again.
        let _ = std::fs::write(self.folder.join(BOOT), boot);
    }

    /// Claims an order, and says at once that it may be started in this run of the machine, unless that is still to be decided. It is
    /// on the disk when this returns. A file that was cut by a crash counts as none: nobody has acknowledged the order before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(&self, order: &Order, starting_in: Option<&str>) -> Result<Claim, Failure> {
        let path = self.path(&order.id);
        let fresh = self.folder.join(format!(".{}", order.id));
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec(&First { order: order.clone() })?;
            text.push(b'\n');
            if let Some(boot) = starting_in {
                text.extend_from_slice(format!("{STARTING}{boot}\n").as_bytes());
            }
            let mut file = File::create(&fresh)?;
            file.write_all(&text)?;
            // Its name first: then most file systems bring both to the disk at once.
            std::fs::rename(&fresh, &path)?;
            file.sync_data()?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| cannot(&path, &error))?;
        let starting_in = starting_in.map(str::to_owned);
        Ok(Claim { path, order: order.clone(), starting_in, job: None })
    }

    /// The claim on an order, if there is one.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Claim> {
        Claim::read(self.path(id))
    }

    /// All claims.
    #[must_use]
    pub fn all(&self) -> Vec<Claim> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_whole =
            |path: &PathBuf| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
        entries.map(|entry| entry.path()).filter(is_whole).filter_map(Claim::read).collect()
    }
}

impl Claim {
    fn read(path: PathBuf) -> Option<Self> {
        let text = std::fs::read_to_string(&path).ok()?;
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let First { order } = serde_json::from_str(lines.next()?).ok()?;
        let mut claim = Self { path, order, starting_in: None, job: None };
        for line in lines {
            if let Some(boot) = line.strip_prefix(STARTING) {
                claim.starting_in = Some(boot.to_owned());
            } else if let Some(job) = line.strip_prefix(JOB) {
                claim.job = job.parse().ok();
            }
        }
        Some(claim)
    }

    /// It may be started from now on. That is on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written: then it must not be started.
    pub fn starting(&mut self, boot: &str) -> Result<(), Failure> {
        self.add(&format!("{STARTING}{boot}\n"))?.sync_data().map_err(|error| cannot(&self.path, &error))?;
        self.starting_in = Some(boot.to_owned());
        Ok(())
    }

    /// It has become a job. What is returned is to be brought to the disk, which nobody needs to wait for: until then, a crash of the
    /// machine leaves the outcome unknown.
    pub fn started(&mut self, job: u64) -> Option<File> {
        self.job = Some(job);
        // Should it not be noted, the order itself is found among those that were carried out.
        self.add(&format!("{JOB}{job}\n")).ok()
    }

    fn add(&self, line: &str) -> Result<File, Failure> {
        let write = || -> std::io::Result<File> {
            let mut file = File::options().append(true).open(&self.path)?;
            file.write_all(line.as_bytes())?;
            Ok(file)
        };
        write().map_err(|error| cannot(&self.path, &error))
    }

    /// The broker knows what became of it.
    pub fn settle(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::system(format!("cannot write the claim {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Priority, Retry};
    use outlast_job::request::JobSpec;

    #[test]
    fn a_claim_says_how_far_it_got_and_half_a_line_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let claims = Claims::open(folder.path()).unwrap();
        let order = Order {
            id: "order-0001".into(),
            label: "build".into(),
            priority: Priority::Normal,
            retry: Retry::Never,
            after: Vec::new(),
            by: "alice".into(),
            at: 1,
            repeats: false,
            spec: JobSpec::shell("true"),
        };
        let mut claim = claims.make(&order, None).unwrap();
        assert_eq!(claims.find("order-0001").unwrap().starting_in, None);
        claim.starting("boot-a").unwrap();
        File::options().append(true).open(&claim.path).unwrap().write_all(b"job 1").unwrap();
        let found = claims.find("order-0001").unwrap();
        assert_eq!((found.starting_in.as_deref(), found.job), (Some("boot-a"), None));
        assert_eq!(claims.all().len(), 1);
        found.settle();
        assert!(claims.all().is_empty());
        claims.intend("order-0001");
        assert_eq!(claims.intents(), ["order-0001"], "a killed process leaves what it was about to claim");
        claims.note_boot("boot-a");
        let claim = claims.make(&order, Some("boot-a")).unwrap();
        assert!(claims.intents().is_empty() && claims.boot().as_deref() == Some("boot-a"));
        assert_eq!(claims.find("order-0001").unwrap().starting_in.as_deref(), Some("boot-a"));
        File::options().write(true).open(&claim.path).unwrap().set_len(5).unwrap();
        assert!(claims.find("order-0001").is_none(), "half a claim is none");
    }
}
