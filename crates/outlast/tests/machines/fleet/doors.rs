//! Every door sees the fleet: lists, the screen of all jobs, the web view, agents; and whole logs.

use std::io::{Read, Write};
use std::net::TcpStream;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::{Broker, Host, sees};
use crate::sandbox;

/// A user who sees a host with a job that runs.
fn user_and_host(broker: &Broker) -> (Sandbox, Host) {
    let user = sandbox();
    broker.tell(&user, "alice");
    let host = Host::join(broker, "gpu1", &[]);
    sees(&user, &["gpu1"]);
    user.run(["run", "--on", "gpu1", "-d", "--name", "train", "echo epoch 1; sleep 1000"]).ok();
    eventually("it is told", TEST_TIMEOUT, || {
        let jobs = user.json(["jobs", "--fleet"]);
        if jobs["jobs"][0]["name"] == "train" { Ok(()) } else { Err(jobs) }
    });
    (user, host)
}

#[test]
fn lists_show_the_fleet_if_the_settings_say_so_and_only_then() {
    let Some(broker) = Broker::start() else { return };
    let (user, _host) = user_and_host(&broker);
    let handles = |user: &Sandbox| -> Vec<String> {
        let jobs = user.json(["jobs", "--all"]);
        jobs["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["handle"].as_str().unwrap().to_owned())
            .collect()
    };
    // Without a link that was made before, nothing but this machine is listed.
    let other = sandbox();
    broker.tell(&other, "bob");
    assert!(handles(&other).is_empty());
    other.run(["config", "set", "fleet.show", "true"]).ok();
    assert_eq!(handles(&other), ["gpu1/1"]);
    let page = user.json(["jobs", "--fleet", "-n", "1", "--skip", "1"]);
    assert_eq!((page["skipped"].as_u64(), page["jobs"].as_array().unwrap().len()), (Some(1), 0), "{page}");
    user.run(["kill", "gpu1/train"]).ok();
}

#[test]
fn top_has_the_jobs_of_the_fleet_and_the_screen_of_the_chosen_one() {
    let Some(broker) = Broker::start() else { return };
    let (user, _host) = user_and_host(&broker);
    let viewer = sandbox();
    broker.tell(&viewer, "bob");
    let program = viewer.program().to_str().unwrap().to_owned();
    viewer.run(["run", "-d", "--name", "view", "--", &program, "top", "--fleet"]).ok();
    eventually("top shows the far job, what it printed, and the fleet in a line", TEST_TIMEOUT, || {
        viewer.run(["send", "view", "--key", "Up"]).ok();
        let screen = viewer.run(["screen", "view"]).ok().text();
        let is_there = ["train", "epoch 1", "fleet: 1 host; 1 runs"].iter().all(|text| screen.contains(text));
        if is_there { Ok(()) } else { Err(screen) }
    });
    viewer.run(["kill", "view"]).ok();
    user.run(["kill", "gpu1/train"]).ok();
}

#[test]
fn the_web_view_counts_jobs_for_who_has_the_token() {
    let here = sandbox();
    let token = here.root().join("token");
    std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
    let served = here.call(["--json", "web", "--no-open", "--metrics-token"]).arg(&token).spawn();
    let address = eventually("the server says where it is", TEST_TIMEOUT, || {
        let text = String::from_utf8(served.stdout_so_far()).unwrap();
        let line = text.split_once('\n').ok_or("nothing yet")?.0;
        let said: serde_json::Value = serde_json::from_str(line).map_err(|_| "not whole")?;
        Ok::<_, &str>(said["address"].as_str().unwrap().trim_start_matches("http://").to_owned())
    });
    let get = |header: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let with_token = "Authorization: Bearer 0123456789abcdef0123\r\n";
    assert!(get("").starts_with("HTTP/1.1 401"), "{}", get(""));
    here.run(["run", "-d", "--name", "one", "exit 3"]).ok();
    here.run(["run", "-d", "--name", "two", "sleep 1000"]).ok();
    let _ended = here.run(["wait", "one"]);
    here.run(["kill", "two"]).ok();
    let wanted = [
        "outlast_jobs_by_state{state=\"failed\"} 1",
        "outlast_job_ends_total{cause=\"itself\"} 1",
        "outlast_job_ends_total{cause=\"kill\"} 1",
        "outlast_job_starts_total 2",
        "outlast_takeovers_total 0",
        "outlast_deliveries{state=\"waiting\"} 0",
    ];
    eventually("both ends are counted", TEST_TIMEOUT, || {
        let answer = get(with_token);
        if wanted.iter().all(|line| answer.contains(line)) { Ok(()) } else { Err(answer) }
    });
}

#[test]
fn a_whole_log_comes_through_the_broker_without_its_secrets() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let _host = Host::join(&broker, "gpu1", &[]);
    sees(&user, &["gpu1"]);
    let line = "seq 1 60000; echo token: $API_TOKEN";
    let started = user.run(["run", "--on", "gpu1", "-d", "-e", "API_TOKEN=hunter2hunter2", line]).ok();
    assert_eq!(started.text().trim(), "gpu1/1");
    user.run(["wait", "gpu1/1"]).ok();
    let to = user.root().join("whole.log");
    let said = user.json(["fleet", "log", "gpu1/1", "--to", to.to_str().unwrap()]);
    let text = std::fs::read_to_string(&to).unwrap();
    assert_eq!(said["bytes"].as_u64().unwrap() as usize, text.len(), "{said}");
    assert!(text.starts_with("1\r\n2\r\n") && text.contains("\r\n60000\r\n"), "all of it: {}", text.len());
    assert!(text.contains("token: ") && !text.contains("hunter2hunter2"), "others can read the store");
    let refused = user.run(["fleet", "log", "gpu9/1"]);
    assert!(refused.stderr.contains("not connected to the broker"), "{refused}");
}
