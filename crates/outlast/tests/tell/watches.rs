//! Watches: set, listed, replaced, removed; once, each time, and after the keeper died.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use super::{entries, entry, sandbox};

#[test]
fn a_watch_is_set_listed_replaced_and_removed() {
    let sandbox = sandbox();
    let job = sandbox.start(["sleep 1000"]).to_string();
    let set = sandbox.json(["watch", &job, "--pattern", "a", "--id", "x"]);
    assert_eq!(set["watches"][0]["id"], "x");
    let set = sandbox.json(["watch", &job, "--pattern", "b", "--id", "x", "--each"]);
    assert_eq!(set["watches"].as_array().unwrap().len(), 1);
    assert_eq!(set["watches"][0]["on"]["patterns"][0], "b");
    sandbox.json(["watch", &job, "--quiet-for", "1h"]);
    let listed = sandbox.run(["watch", &job, "--list"]).ok().text();
    assert_eq!(listed, "x each time: pattern=b\nw1 once: quiet=3600s\n");
    sandbox.run(["watch", &job, "--remove", "x"]).ok();
    sandbox.run(["watch", &job, "--remove", "x"]).code(2).says("no watch");
    sandbox.run(["watch", &job]).code(2).says("something to watch for");
    sandbox.run(["watch", &job, "--pattern", "("]).code(2);
}

#[test]
fn once_is_once_and_each_time_is_each_time() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read x; do echo got $x; done"]).to_string();
    sandbox.run(["watch", &job, "--pattern", "got 1", "--id", "once"]).ok();
    sandbox.run(["watch", &job, "--pattern", r"got (\d)", "--id", "each", "--each"]).ok();
    for round in 1..=3 {
        sandbox.run(["send", &job, "1", "--no-wait"]).ok();
        let fired = |id: &str| {
            let all = entries(&sandbox);
            all.iter().filter(|entry| entry["detail"]["watch"] == id).count()
        };
        eventually("the watch tells", TEST_TIMEOUT, || {
            if fired("each") == round { Ok(()) } else { Err(fired("each")) }
        });
        assert_eq!(fired("once"), 1);
    }
    let told = entries(&sandbox).into_iter().find(|entry| entry["detail"]["watch"] == "each").unwrap();
    assert_eq!(told["detail"]["match"]["captures"][0], "1");
}

#[test]
fn every_line_of_a_burst_is_told_and_where_the_rest_is() {
    let sandbox = sandbox();
    let job =
        sandbox.start(["--notify", "lines", "printf '1\\n2\\n3\\n'; read x; seq 10001 15000; printf last"]);
    let told = |entry: &serde_json::Value| -> Vec<String> {
        let lines = entry["detail"]["lines"].as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    let first = eventually("the first lines are told", TEST_TIMEOUT, || {
        entries(&sandbox).into_iter().find(|entry| entry["count"] == 3).ok_or_else(|| entries(&sandbox))
    });
    assert_eq!(told(&first), ["1", "2", "3"]);
    assert!(first["text"].as_str().unwrap().contains("1 ⏎ 2 ⏎ 3"), "{first}");
    sandbox.run(["send", &job.to_string(), "", "--no-wait"]).ok();
    sandbox.run(["wait", &job.to_string()]).ok();
    // Whoever waits is answered first.
    sandbox.nothing_runs();
    let all = entries(&sandbox);
    // What did not fit is named with the place where it begins.
    let big = all.iter().find(|entry| entry["count"].as_u64().unwrap() > told(entry).len() as u64).unwrap();
    let next = told(big).last().unwrap().parse::<u64>().unwrap() + 1;
    let call: Vec<&str> = big["more"].as_str().unwrap().split(' ').skip(1).collect();
    let rest = sandbox.run(&call).ok().text();
    assert!(rest.starts_with(&format!("{next}\n")), "{call:?}: {}", &rest[..100]);
    let last = all.iter().rev().find(|entry| entry["detail"]["watch"] == "lines-1").unwrap();
    let end = sandbox.log_len(1);
    assert!(told(last).last().unwrap() == "last" || last["offset"] == end, "{last}");
    let quiet = sandbox.start(["--notify", "lines", "printf 'no line end'"]);
    sandbox.run(["wait", &quiet.to_string()]).ok();
    sandbox.nothing_runs();
    let told_last = entries(&sandbox).into_iter().find(|entry| entry["job"] == quiet).unwrap();
    assert_eq!(told(&told_last), ["no line end"]);
}

#[test]
fn silence_a_still_screen_and_a_port_are_told() {
    let sandbox = sandbox();
    let script =
        "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); time.sleep(1000)";
    let job = sandbox
        .start(["--notify", "port,quiet=2s", &format!("echo up; exec python3 -c \"{script}\"")])
        .to_string();
    sandbox.run(["watch", &job, "--stable", "2", "--stable-interval", "100ms"]).ok();
    for kind in ["quiet", "stable", "port"] {
        entry(&sandbox, kind);
    }
    assert_eq!(entries(&sandbox).iter().filter(|entry| entry["event"] == "quiet").count(), 1);
}

#[test]
fn an_heir_takes_up_the_watches() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read x; do echo got $x; done"]);
    let name = job.to_string();
    sandbox.run(["watch", &name, "--pattern", "got 2", "--each", "--id", "w"]).ok();
    outlast_testkit::processes::kill_dash_nine(&sandbox.process(job, "keeper"));
    eventually("the heir answers", TEST_TIMEOUT, || {
        let ran = sandbox.call(["send", &name, "2", "--no-wait"]).run();
        if ran.code == Some(0) { Ok(()) } else { Err(ran.stderr) }
    });
    let told = entry(&sandbox, "pattern");
    assert_eq!((told["detail"]["watch"].as_str(), told["count"].as_u64()), (Some("w"), Some(1)));
}

#[test]
fn output_and_text_that_goes_are_told() {
    let sandbox = sandbox();
    let job =
        sandbox.start(["printf 'Loading'; read x; printf '\\033[2J\\033[HReady'; sleep 1000"]).to_string();
    sandbox.run(["wait", &job, "--pattern", "Loading"]).ok();
    sandbox.run(["watch", &job, "--gone", "Loading", "--id", "gone"]).ok();
    sandbox.run(["watch", &job, "--output", "--id", "output"]).ok();
    assert!(entries(&sandbox).iter().all(|entry| entry["detail"]["watch"].is_null()));
    sandbox.run(["send", &job, "go", "--no-wait"]).ok();
    for kind in ["gone", "output"] {
        let told = entry(&sandbox, kind);
        assert_eq!(told["detail"]["watch"], kind);
    }
}
