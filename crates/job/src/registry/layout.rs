//! Every file name of a home and of a job folder, once.

/// Below the home: one folder a job, by handle.
pub const JOBS: &str = "jobs";
/// Below the home: one file a name, holding the handle.
pub const NAMES: &str = "names";
/// Below the home: locked while a name is claimed or retention runs.
pub const HOME_LOCK: &str = "lock";
/// Below the home: the highest handle whose folder has been removed.
pub const RETIRED: &str = "retired";
/// Below the home: its time is that of the last sweep; what it says, how far the home is over its budget.
pub const SWEPT: &str = "swept";
/// Below the home: what lists know of ended jobs; may be deleted at any time.
pub const INDEX: &str = "index";

/// Below the home: temporary folders of jobs in a sandbox, by handle, while they run.
pub const TEMPORARY: &str = "tmp";

/// The job: spec, pids, state, receipt.
pub const INFO: &str = "info.json";
/// Held by keeper and heir for as long as one of them lives.
pub const LOCK: &str = "lock";
/// Every byte the job wrote; in pipe mode, what it wrote to stdout.
pub const OUTPUT: &str = "output.log";
/// In pipe mode, every byte written to stderr.
pub const ERRORS: &str = "stderr.log";
/// The transcript.
pub const TRANSCRIPT: &str = "stdout.txt";
/// In pipe mode, the transcript of stderr.
pub const ERROR_TRANSCRIPT: &str = "stderr.txt";
/// Offsets and times of output, resizes, and ranges that are gone.
pub const TIMING: &str = "timing";
/// Numbered events.
pub const EVENTS: &str = "events.jsonl";
/// The watches that clients have set; of a running job.
pub const WATCHES: &str = "watches.json";
/// Fingerprints of the job's secrets, so that they can be hidden.
pub const MASKS: &str = "masks";
/// The last screen, once the job has ended.
pub const SCREEN: &str = "screen.txt";
/// Empty; there once somebody was told how the job ended.
pub const READ: &str = "read";
/// The keeper's socket, while it runs.
pub const SOCKET: &str = "keeper.sock";
