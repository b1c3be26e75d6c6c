//! Whether the machine is too busy for one more job: the kernel's own word for it (pressure stall information).

use std::time::Duration;

use crate::settings::PressureLimits;

/// How often the kernel works its averages out anew. It tells nobody when pressure falls, so a job that it holds back looks this
/// often; only the first in line does.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The part of the last ten seconds in which nothing went on for want of something, in percent; none where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    pub(crate) memory: Option<f64>,
    pub(crate) io: Option<f64>,
}

impl Pressure {
    /// As it is now.
    pub(crate) fn read() -> Self {
        let read = |name| full_avg10(&std::fs::read_to_string(format!("/proc/pressure/{name}")).ok()?);
        Self { memory: read("memory"), io: read("io") }
    }

    /// Why a job is held back, in words; none if it is not.
    pub(crate) fn over(self, limits: &PressureLimits) -> Option<String> {
        let is_over = |now: Option<f64>, limit: u32| now.filter(|now| *now > f64::from(limit));
        if let Some(now) = is_over(self.memory, limits.memory) {
            let limit = limits.memory;
            return Some(format!("the machine is short of memory (pressure {now:.0} %, limit {limit} %)"));
        }
        let now = is_over(self.io, limits.io)?;
        Some(format!("the disks are busy (pressure {now:.0} %, limit {} %)", limits.io))
    }
}

fn full_avg10(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("full "))?;
    let value = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let text = "some avg10=1.41 avg60=3.72 avg300=2.90 total=15076884\nfull avg10=66.09 avg60=0.69 avg300=0.94 total=6675057\n";
        assert_eq!(full_avg10(text), Some(66.09));
        assert_eq!(full_avg10("some avg10=1.0"), None);
        let limits = PressureLimits::default();
        let busy = Pressure { memory: Some(0.0), io: Some(66.09) };
        assert!(busy.over(&limits).unwrap().contains("disks"), "{busy:?}");
        assert_eq!(Pressure::default().over(&limits), None, "a kernel that does not say holds nobody back");
    }
}
