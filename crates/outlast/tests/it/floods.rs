//! Floods: every byte in the log, in bounded memory; and the cap.

use std::fmt::Write as _;
use std::os::unix::fs::{FileExt, MetadataExt};

use outlast_testkit::processes::{kill_dash_nine, status_kib};
use outlast_testkit::{Dice, Sandbox, TEST_TIMEOUT, eventually};

use crate::{assert_same, sandbox};

/// A line of the flood as a terminal prints it.
const LINE: u64 = 65;

/// 64 MiB, or 1 GiB when `OUTLAST_LONG_TESTS=1`.
fn flood_size() -> u64 {
    if std::env::var_os("OUTLAST_LONG_TESTS").is_some_and(|value| value == "1") { 1 << 30 } else { 64 << 20 }
}

/// Compares a log with what the flood printed, line by line and without holding all of it.
fn assert_log_is_the_flood(sandbox: &Sandbox, job: u64, lines: u64, from_line: u64) {
    let log = std::fs::File::open(sandbox.job(job).join("output.log")).unwrap();
    assert_eq!(log.metadata().unwrap().len(), lines * LINE);
    let mut wanted = String::new();
    let mut seen = Vec::new();
    for first in (from_line..lines).step_by(4096) {
        wanted.clear();
        for i in first..(first + 4096).min(lines) {
            write!(wanted, "{i:063}\r\n").unwrap();
        }
        seen.resize(wanted.len(), 0);
        log.read_exact_at(&mut seen, first * LINE).unwrap();
        assert!(seen == wanted.as_bytes(), "between lines {first} and {}", first + 4096);
    }
}

/// In a flood the transcript is written a little behind the log: an heir must not count what was not written yet.
#[test]
fn a_keeper_killed_in_a_flood_leaves_log_and_transcript_whole() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let lines: u64 = (8 << 20) / 64;
    let wanted: String = (0..lines).map(|i| format!("{i:063}\n")).collect();
    for _ in 0..5 {
        let job = sandbox.start([&format!("'{}' floods {}", sandbox.fixture(), lines * 64)]);
        let moment = dice.below(lines * LINE * 3 / 4);
        eventually("the flood has got there", TEST_TIMEOUT, || match sandbox.log_len(job) {
            len if len >= moment => Ok(()),
            len => Err(len),
        });
        kill_dash_nine(&sandbox.process(job, "keeper"));
        assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
        assert_log_is_the_flood(&sandbox, job, lines, 0);
        assert_same(&std::fs::read(sandbox.job(job).join("stdout.txt")).unwrap(), wanted.as_bytes());
    }
}

#[test]
fn a_flood_is_in_the_log_byte_for_byte_and_the_keeper_stays_small() {
    let sandbox = sandbox();
    let bytes = flood_size();
    // It asks at its end, so that the keeper can be looked at when all is done.
    let line = format!("'{}' floods {bytes}; read answer", sandbox.fixture());
    let job = sandbox.start(["--log-cap", "4GiB", &line]);
    let lines = bytes / 64;
    let long = std::time::Duration::from_secs(1800);
    eventually("the flood is over", long, || match sandbox.log_len(job) {
        len if len >= lines * LINE => Ok(()),
        len => Err(len),
    });
    let peak = status_kib(sandbox.pid(job, "keeper"), "VmHWM");
    assert!(peak < 24 << 10, "the keeper's memory stays flat: {peak} KiB at its peak");
    assert_log_is_the_flood(&sandbox, job, lines, 0);
    // As cheap to find at the end of a long log as at its beginning.
    let last = format!("{:063}", lines - 1);
    let found = sandbox.json([
        "wait",
        &job.to_string(),
        "--pattern",
        &last,
        "--since",
        &((lines - 9) * LINE).to_string(),
    ]);
    assert_eq!(found["at_offset"], lines * LINE - 2, "{found}");
    sandbox.json(["send", &job.to_string(), "", "--no-wait"]);
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
}

#[test]
fn past_the_cap_the_middle_goes_and_every_reader_is_told() {
    let sandbox = sandbox();
    let bytes = 8 << 20;
    let lines: u64 = bytes / 64;
    let args = ["--log-cap", "2MiB", "--", &sandbox.fixture(), "floods", &bytes.to_string()];
    let job = sandbox.start(args);
    let name = job.to_string();
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0, "it is not ended for it");
    sandbox.nothing_runs();
    let info = sandbox.info(job);
    let ranges = info["gone"].as_array().expect("what is gone is recorded");
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    let (from, to) = (ranges[0][0].as_u64().unwrap(), ranges[0][1].as_u64().unwrap());
    assert!(lines * LINE - (to - from) <= 2 << 20, "at most the cap is kept: {from}..{to}");
    assert_log_is_the_flood(&sandbox, job, lines, to / LINE + 1);
    let file = std::fs::metadata(sandbox.job(job).join("output.log")).unwrap();
    assert!(file.blocks() * 512 <= (2 << 20) + (256 << 10), "the disk has it back: {} blocks", file.blocks());

    let raw = sandbox.run(["read", "--raw", &name]).ok().says(&format!("{} bytes are gone", to - from));
    assert_eq!(raw.stdout.len() as u64, lines * LINE - (to - from));
    let told = sandbox.json(["read", &name]);
    assert_eq!(told["gone_bytes"], to - from, "{told}");
    assert_eq!(told["offset"], lines * LINE, "{told}");
    let inside =
        sandbox.json(["read", &name, "--since", &(from + 10).to_string(), "--until", &(to - 10).to_string()]);
    assert_eq!(inside["gone_bytes"], to - from - 20, "{inside}");
    let tail = sandbox.run(["read", &name, "--tail", "1"]).ok().text();
    assert_eq!(tail, format!("{:063}\n", lines - 1));
    assert!(sandbox.events(job).iter().any(|event| event["event"] == "log_capped"));
}

#[test]
fn one_endless_line_is_no_trouble() {
    let sandbox = sandbox();
    let job = sandbox.start(["head -c 3000000 /dev/zero | tr '\\0' x; echo; read answer"]);
    eventually("all of it is there", TEST_TIMEOUT, || match sandbox.log_len(job) {
        3_000_002 => Ok(()),
        len => Err(len),
    });
    assert!(sandbox.log(job)[..3_000_000].iter().all(|byte| *byte == b'x'));
    let peak = status_kib(sandbox.pid(job, "keeper"), "VmHWM");
    assert!(peak < 32 << 10, "{peak} KiB");
    let answer = sandbox.json(["read", &job.to_string()]);
    assert!(answer["output"].as_str().unwrap().len() <= 17 << 10, "answers are bounded");
    assert!(answer["omitted_bytes"].as_u64().unwrap() > 2_900_000);
}

#[test]
fn bytes_that_are_no_text_stay_what_they_are() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", r"printf '\001\377\376\000caf\303\251\n'"]);
    sandbox.wait_for_end(job);
    assert_eq!(sandbox.log(job), b"\x01\xff\xfe\0caf\xc3\xa9\n");
    assert_eq!(sandbox.run(["read", "--raw", "1"]).ok().stdout, b"\x01\xff\xfe\0caf\xc3\xa9\n");
    assert!(sandbox.run(["read", "1"]).ok().text().contains("\u{fffd}\u{fffd}"));
}

/// A turn of the keeper may end with bytes on their way from the terminal to the log. They must not wait there for the
/// program to say something more, which it may never do.
#[test]
fn nothing_is_left_on_the_way_when_a_program_falls_silent() {
    let sandbox = sandbox();
    let jobs: Vec<u64> =
        (0..4).map(|_| sandbox.start(["head -c 2000000 /dev/zero | tr '\\0' x; read answer"])).collect();
    for job in jobs {
        eventually("all of it is there", TEST_TIMEOUT, || match sandbox.log_len(job) {
            2_000_000 => Ok(()),
            len => Err(len),
        });
    }
}
