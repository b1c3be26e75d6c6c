//! What machines tell of themselves, where there are too many to ask each: the hosts of a fleet.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_protocol::HostName;
use outlast_protocol::request::ListedJob;

use super::Outlast;
use crate::failure::Failure;

/// What machines have told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// How many are there.
    pub hosts: usize,
    /// Those that are not heard of, and for how long, in milliseconds.
    pub away: BTreeMap<HostName, u64>,
    /// How many jobs they have, by what these need.
    pub totals: Vec<(&'static str, u64)>,
    /// The first of them, those that need somebody first.
    pub jobs: Vec<ListedJob>,
}

impl Told {
    /// All of it in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let some = self.totals.iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = some.map(|(need, count)| format!("{count} {need}")).collect();
        let jobs = if counts.is_empty() { "no jobs".to_owned() } else { counts.join(", ") };
        let away = match self.away.len() {
            0 => String::new(),
            1..=3 => {
                let names: Vec<&str> = self.away.keys().map(HostName::as_str).collect();
                format!(", unreachable: {}", names.join(", "))
            }
            many => format!(", {many} unreachable"),
        };
        let hosts = if self.hosts == 1 { "host" } else { "hosts" };
        format!("{} {hosts}{away}; {jobs}", self.hosts)
    }
}

impl Outlast {
    /// Whether there is a fleet, and lists are to show it.
    #[must_use]
    pub fn shows_fleet(&self) -> bool {
        self.hosts.hosts.as_ref().is_some_and(|hosts| hosts.shows_fleet())
    }

    /// What the hosts of a fleet tell, at most so many jobs; none where there is no fleet to be seen.
    #[must_use]
    pub fn told(&self, most: usize) -> Option<Result<Told, Failure>> {
        self.hosts.hosts.as_ref()?.told(most)
    }

    /// Returns when what the hosts of a fleet tell may have changed, and after that time at the latest.
    pub fn wait_for_change(&self, at_most: Duration) {
        match &self.hosts.hosts {
            Some(hosts) => hosts.wait_for_change(at_most),
            None => std::thread::sleep(at_most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_said_in_a_few_words_however_many_are_away() {
        let mut told =
            Told { hosts: 7, totals: vec![("asks", 1), ("runs", 0), ("done", 40)], ..Told::default() };
        assert_eq!(told.words(), "7 hosts; 1 asks, 40 done");
        told.away.insert("gpu1".parse().unwrap(), 20_000);
        assert_eq!(told.words(), "7 hosts, unreachable: gpu1; 1 asks, 40 done");
        for number in 2..9 {
            told.away.insert(format!("gpu{number}").parse().unwrap(), 20_000);
        }
        assert_eq!(told.words(), "7 hosts, 8 unreachable; 1 asks, 40 done");
    }
}
