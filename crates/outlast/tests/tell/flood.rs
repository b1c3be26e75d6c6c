//! A flood is told as one event with the right count, and costs no memory.

use outlast_testkit::processes;

use super::{entries, entry, sandbox};

#[test]
fn a_hundred_thousand_lines_are_one_event() {
    let sandbox = sandbox();
    let job = sandbox.start(["--notify", "pattern=line", "read x; seq -f 'line %g' 100000; sleep 1000"]);
    let keeper = sandbox.pid(job, "keeper");
    let name = job.to_string();
    // Small matches first: what a search needs in any case is there now.
    sandbox.run(["send", &name, "line", "--no-wait"]).ok();
    let told = super::entries;
    let flood = outlast_testkit::eventually("the flood is told", outlast_testkit::PATIENCE * 2, || {
        let all = told(&sandbox);
        let count: u64 = all.iter().map(|entry| entry["count"].as_u64().unwrap()).sum();
        if count >= 100_000 { Ok(all) } else { Err(all) }
    });
    let count: u64 = flood.iter().map(|entry| entry["count"].as_u64().unwrap()).sum();
    // What was typed is echoed, and is a line too.
    assert_eq!(count, 100_001, "{flood:?}");
    assert!(flood.len() <= 2, "{flood:?}");
    assert!(flood.iter().all(|entry| entry.to_string().len() < 2048), "{flood:?}");
    let last = flood.last().unwrap();
    assert!(last["from"].as_u64() < last["offset"].as_u64(), "{last}");
    let peak = processes::status_kib(keeper, "VmHWM");
    assert!(peak < 40 << 10, "the keeper took {peak} KiB");
    sandbox.run(["kill", &name]).ok();
    let _ = entry;
    assert!(entries(&sandbox).len() <= 3);
}
