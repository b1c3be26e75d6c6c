//! Every file name in a home and in a job folder, defined once.

/// In the home: one folder per job, by handle.
pub const JOBS: &str = "jobs";
/// In the home: one file per name, with the handle.
pub const NAMES: &str = "names";
/// In the home: locked while a name is claimed or retention runs.
pub const HOME_LOCK: &str = "lock";
/// In the home: the highest handle whose folder has been removed.
pub const RETIRED: &str = "retired";
/// In the home: which numbers may have been given to jobs.
pub const NUMBERS: &str = "numbers";
/// In the home: its modification time is that of the last sweep; it says how far the home is over its budget.
pub const SWEPT: &str = "swept";
/// In the home: the unit of systemd that jobs were last started in, once it was said whether they end with it.
pub const UNIT: &str = "unit";
/// In the home: a cache of ended jobs for lists; may be deleted at any time.
pub const INDEX: &str = "index";

/// In the home: one folder per slot, with the jobs in line and those that have a place.
pub const SLOTS: &str = "slots";
/// In the home: one file per order from another machine, with how far it has got.
pub const ORDERS: &str = "orders";
/// In the home: fingerprints of secrets that any of its jobs was given.
pub const SECRETS: &str = "secrets";
/// In the home: locked while a secret is added.
pub const SECRETS_LOCK: &str = "secrets.lock";

/// In the home: temporary folders of running jobs in a sandbox, by handle.
pub const TEMPORARY: &str = "tmp";

/// The job's record: spec, pids, state, receipt.
pub const INFO: &str = "info.json";
/// Locked while the keeper or the heir lives.
pub const LOCK: &str = "lock";
/// Every byte that the job wrote; in pipe mode, to stdout.
pub const OUTPUT: &str = "output.log";
/// In pipe mode, every byte that it wrote to stderr.
pub const ERRORS: &str = "stderr.log";
/// The transcript.
pub const TRANSCRIPT: &str = "stdout.txt";
/// In pipe mode, the transcript of stderr.
pub const ERROR_TRANSCRIPT: &str = "stderr.txt";
/// Offsets and times of output, and resizes.
pub const TIMING: &str = "timing";
/// Numbered events.
pub const EVENTS: &str = "events.jsonl";
/// Of a shell: the events of its steps, and those before them.
pub const STEPS: &str = "steps.jsonl";
pub const OLD_STEPS: &str = "steps.old.jsonl";
/// A mark in the mode of [`STEPS`]: the last steps could not be written yet.
pub(crate) const STEPS_BEHIND: rustix::fs::Mode = rustix::fs::Mode::XUSR;
/// The watches that clients have set on a running job.
pub const WATCHES: &str = "watches.json";
/// Whom to wake for what happens, if anybody.
pub const WAKES: &str = "wakes.json";
/// Of a shell: the commands that make another shell remember what this one does.
pub const SHELL_STATE: &str = "shell-state";
/// Fingerprints of the job's secrets, so that they can be hidden.
pub const MASKS: &str = "masks";
/// The last screen, once the job has ended.
pub const SCREEN: &str = "screen.txt";
/// Empty; exists once someone was told how the job ended.
pub const READ: &str = "read";
/// Empty; exists while the job is to be kept whatever its age.
pub const PINNED: &str = "pinned";
/// The keeper's socket, while it runs.
pub const SOCKET: &str = "keeper.sock";
