//! Serving: where it listens, what it keeps, and that it may be killed.

use serde_json::json;

use crate::client::Served;
use crate::sandbox;

#[test]
fn an_address_that_others_reach_needs_tls() {
    let sandbox = sandbox();
    for bind in ["0.0.0.0", "::"] {
        sandbox.run(["web", "--no-open", "--bind", bind]).code(2).says("there is no TLS");
    }
    sandbox.run(["web", "--no-open", "--bind", "0.0.0.0", "--tls-cert", "/nothing"]).code(2);
    let missing = ["web", "--no-open", "--tls-cert", "/nothing.pem", "--tls-key", "/nothing.pem"];
    sandbox.run(missing).code(2).says("cannot use /nothing.pem");
}

#[test]
fn a_killed_server_comes_back_where_it_was_and_pages_go_on() {
    let sandbox = sandbox();
    sandbox.start(["sleep 600"]);
    let served = Served::start(&sandbox, &[]);
    let page = served.page();
    assert_eq!(page.call(&json!({ "call": "hello" }))["visitor"], "owner");
    let address = served.said["address"].clone();
    served.running.kill_dash_nine();
    let again = Served::start(&sandbox, &[]);
    assert_eq!(again.said["address"], address, "the port is remembered");
    let mut socket = page.socket();
    assert!(socket.say(&json!({ "t": "jobs" })));
    assert_eq!(page.call(&json!({ "call": "job", "job": "1" }))["state"], "running");
}

#[test]
fn a_second_server_of_a_home_gives_a_link_to_the_first() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &[]);
    let second = sandbox.json(["web", "--no-open"]);
    assert_eq!(second["already"], true, "{second}");
    assert_eq!(second["address"], served.said["address"]);
    let ticket = second["url"].as_str().unwrap().split("#ticket=").nth(1).unwrap();
    assert!(served.enter(json!({ "ticket": ticket })).is_some());
}

#[test]
fn a_read_only_view_changes_nothing() {
    let sandbox = sandbox();
    let job = sandbox.start(["read a; echo got $a"]).to_string();
    let page = Served::start(&sandbox, &["--read-only"]).into_page();
    for call in [
        json!({ "call": "send", "job": job, "text": "x", "enter": true }),
        json!({ "call": "kill", "job": job }),
        json!({ "call": "hold", "job": job, "take": true }),
        json!({ "call": "secret", "job": job, "value": "x" }),
        json!({ "call": "answer", "job": job, "question": 1, "allow": true }),
    ] {
        assert_eq!(page.1.try_call(&call).status, 403, "{call}");
    }
    let mut socket = page.1.socket();
    socket.say(&json!({ "t": "keys", "job": job, "data": "x\r" }));
    let refused = socket.hear_of("refused").unwrap();
    assert_eq!(refused["error"]["kind"], "denied", "{refused}");
}

#[test]
fn a_server_inside_a_job_only_shows() {
    let sandbox = sandbox();
    let program = sandbox.program().display().to_string();
    let job = sandbox.start([format!("exec {program} --json web --no-open")]);
    sandbox.wait_for_text(job, "read_only");
    let said = sandbox.run(["read", &job.to_string()]).ok().text();
    assert!(said.contains(r#""read_only":true"#), "{said}");
}

#[test]
fn jobs_of_other_machines_are_in_the_list() {
    let (near, far) = (sandbox(), sandbox());
    far.start(["--name", "there", "--", "sh", "-c", "echo from afar; sleep 600"]);
    let reach =
        format!("command:exec env OUTLAST_HOME={} {} relay", far.home().display(), far.program().display());
    near.run(["host", "add", "gpu1", &reach]).ok();
    near.run(["host", "add", "gone", "command:exec false"]).ok();
    near.start(["--name", "here", "--", "sleep", "600"]);
    let (_served, page) = Served::start(&near, &[]).into_page();
    let mut socket = page.socket();
    socket.say(&json!({ "t": "jobs" }));
    let (mut hosts, mut troubles) = (std::collections::BTreeMap::new(), String::new());
    while hosts.len() < 2 || troubles.is_empty() {
        let jobs = socket.hear_of("jobs").unwrap();
        for card in jobs["changed"].as_array().unwrap() {
            hosts.insert(card["job"].as_str().unwrap().to_owned(), card["host"].clone());
        }
        troubles = jobs["troubles"]["gone"].as_str().unwrap_or(&troubles).to_owned();
    }
    assert_eq!((&hosts["gpu1/1"], &hosts["1"]), (&json!("gpu1"), &json!(null)));
    let shown = page.call(&json!({ "call": "screen", "job": "gpu1/1" }));
    assert_eq!(shown["rows"][0], "from afar", "{shown}");
    assert_eq!(page.call(&json!({ "call": "job", "job": "gpu1/1" }))["host"], "gpu1");
}

#[test]
fn two_runs_are_compared_and_steps_are_in_the_timeline() {
    let sandbox = sandbox();
    let (first, second) = (sandbox.start(["echo one; echo same"]), sandbox.start(["echo two; echo same"]));
    for job in [first, second] {
        sandbox.wait_for_end(job);
    }
    sandbox.run(["run", "--shell", "dev", "cd /tmp"]).ok();
    sandbox.run(["run", "--shell", "dev", "(exit 3)"]).code(3);
    let (_served, page) = Served::start(&sandbox, &[]).into_page();
    let compare = json!({ "call": "compare", "first": first.to_string(), "second": second.to_string(), "ignore_numbers": false });
    let found = page.call(&compare);
    assert_eq!((&found["added"], &found["removed"], &found["same"]), (&json!(1), &json!(1), &json!(false)));
    let shell = sandbox.json(["jobs", "--all"]);
    let shell =
        shell["jobs"].as_array().unwrap().iter().map(|job| job["handle"].as_u64().unwrap()).max().unwrap();
    let timeline = page.call(&json!({ "call": "timeline", "job": shell.to_string() }));
    let steps: Vec<_> =
        timeline["events"].as_array().unwrap().iter().filter(|event| event["event"] == "step").collect();
    assert_eq!(steps.len(), 2, "{timeline}");
    assert_eq!((&steps[1]["command"], &steps[1]["exit_code"]), (&json!("(exit 3)"), &json!(3)), "{timeline}");
}

#[test]
fn only_screens_in_view_are_sent() {
    let sandbox = sandbox();
    let line = "while read line; do echo got $line; done";
    let (seen, unseen) = (sandbox.start(["sh", "-c", line]), sandbox.start(["sh", "-c", line]));
    let (_served, page) = Served::start(&sandbox, &[]).into_page();
    let mut socket = page.socket();
    let rows_until = |socket: &mut crate::client::WebSocket, text: &str| {
        let mut jobs = Vec::new();
        loop {
            let rows = socket.hear_of("rows").unwrap();
            jobs.push(rows["job"].as_str().unwrap().to_owned());
            if rows["rows"].to_string().contains(text) {
                return jobs;
            }
        }
    };
    socket.say(&json!({ "t": "tiles", "jobs": [seen.to_string()] }));
    for number in 0..3 {
        sandbox.run(["send", &unseen.to_string(), &format!("hidden {number}")]).ok();
        sandbox.run(["send", &seen.to_string(), &format!("shown {number}")]).ok();
        let sent = rows_until(&mut socket, &format!("got shown {number}"));
        assert!(sent.iter().all(|job| *job == seen.to_string()), "{sent:?}");
    }
    // It scrolls into view, and the other out of it.
    socket.say(&json!({ "t": "tiles", "jobs": [unseen.to_string()] }));
    rows_until(&mut socket, "got hidden 2");
    sandbox.run(["send", &seen.to_string(), "no longer shown"]).ok();
    sandbox.run(["send", &unseen.to_string(), "the last"]).ok();
    let sent = rows_until(&mut socket, "got the last");
    assert!(sent.iter().all(|job| *job == unseen.to_string()), "{sent:?}");
}

/// A log of any length opens as fast as a short one: what has left the screen comes after the screen.
#[test]
fn an_opened_terminal_is_shown_before_what_has_left_its_screen() {
    const SNAPSHOT: u8 = 1;
    const BEFORE: u8 = 3;
    let sandbox = sandbox();
    sandbox.start(["seq 1 3000; echo the last line; sleep 600"]);
    sandbox.wait_for_text(1, "the last line");
    let (_served, page) = Served::start(&sandbox, &[]).into_page();
    let mut socket = page.socket();
    socket.say(&json!({ "t": "open", "job": "1", "channel": 7, "bytes": true, "history": true }));
    let mut frame = || loop {
        let (kind, payload) = socket.hear().unwrap();
        if kind == 2 {
            return (payload[0], String::from_utf8_lossy(&payload[12..]).into_owned());
        }
    };
    let (kind, screen) = frame();
    assert!(kind == SNAPSHOT && screen.contains("the last line"), "{kind}: {screen}");
    let (kind, before) = frame();
    assert_eq!(kind, BEFORE, "{before}");
    assert!(
        before.lines().any(|line| line.starts_with("2900")) && !before.contains("the last line"),
        "{before}"
    );
    let (kind, again) = frame();
    assert!(
        kind == SNAPSHOT && again.contains("the last line"),
        "it is drawn below what was before: {kind}: {again}"
    );
}

impl Served {
    fn into_page(self) -> (Self, crate::client::Page) {
        let page = self.page();
        (self, page)
    }
}
