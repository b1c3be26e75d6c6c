//! What a process uses: its CPU time and its memory, from `/proc`.

use rustix::process::Pid;

/// The fields of `/proc/PID/stat` after the program's name, counted from 0.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
const USER_TICKS: usize = 11;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
const RESIDENT_PAGES: usize = 21;

/// What a process has used, or uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in milliseconds: its own, and that of the children it has waited for.
    pub cpu_ms: u64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
}

/// What a process uses; none when it is gone.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[must_use]
pub fn usage(pid: Pid) -> Option<Usage> {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    parse(&line, ticks_per_second, rustix::param::page_size() as u64)
}

/// Not told in units that mean the same everywhere.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[must_use]
pub fn usage(_pid: Pid) -> Option<Usage> {
    None
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn parse(line: &str, ticks_per_second: u64, page: u64) -> Option<Usage> {
    // The name may contain blanks and brackets, so the last `)` ends it.
    let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    // Its own user and system time, then those of its children.
    let times = fields.get(USER_TICKS..USER_TICKS + 4)?;
    let ticks: u64 = times.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    let pages: u64 = fields.get(RESIDENT_PAGES)?.parse().ok()?;
    Some(Usage { cpu_ms: ticks * 1000 / ticks_per_second, memory_bytes: pages * page })
}

#[cfg(all(test, target_os = "linux", not(outlast_portable)))]
mod tests {
    use super::*;

    #[test]
    fn reads_the_times_and_the_memory_of_a_stat_line() {
        let line =
            "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 10 20 30 40 20 0 1 0 5 9999 256 18446744073709551615";
        let usage = parse(line, 100, 4096).unwrap();
        assert_eq!(usage, Usage { cpu_ms: 1000, memory_bytes: 256 * 4096 });
    }

    #[test]
    fn this_process_has_some_memory() {
        assert!(usage(rustix::process::getpid()).unwrap().memory_bytes > 100_000);
    }
}
