//! A flood is told as one event with the right count, and costs no memory.

use outlast_testkit::{TEST_TIMEOUT, eventually, processes};

use super::{entries, sandbox};

#[test]
fn a_hundred_thousand_lines_are_one_event() {
    let sandbox = sandbox();
    let job = sandbox.start(["--notify", "pattern=line", "read x; seq -f 'line %g' 100000; sleep 1000"]);
    let keeper = sandbox.pid(job, "keeper");
    let before = processes::status_kib(keeper, "VmHWM");
    sandbox.run(["send", &job.to_string(), "line", "--no-wait"]).ok();
    let counted =
        |all: &[serde_json::Value]| -> u64 { all.iter().map(|e| e["count"].as_u64().unwrap()).sum() };
    let told = eventually("the flood is told", TEST_TIMEOUT * 2, || {
        let all = entries(&sandbox);
        if counted(&all) >= 100_000 { Ok(all) } else { Err(all) }
    });
    // What was typed is echoed, and is a line too; it may have been told by itself.
    assert_eq!(counted(&told), 100_001, "{told:?}");
    assert!(told.len() <= 2, "{told:?}");
    assert!(told.iter().all(|entry| entry.to_string().len() < 2048), "{told:?}");
    let last = told.last().unwrap();
    assert!(last["from"].as_u64() < last["offset"].as_u64(), "{last}");
    let peak = processes::status_kib(keeper, "VmHWM");
    eprintln!("the keeper's memory: {before} KiB before, {peak} KiB at most");
    assert!(peak < before + (12 << 10), "the keeper took {peak} KiB, {before} before");
}
