//! Events of all hosts, each once for a reader with a name.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::{Broker, Host, sees};
use crate::sandbox;

/// What a reader with a name is told now: hosts and numbers.
fn told(user: &Sandbox, reader: &str) -> Vec<(String, u64)> {
    let ran = user.run(["events", "--fleet", "--reader", reader, "--json"]).ok();
    let text = ran.text().to_owned();
    let event = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event.get("gap").is_none() && event.get("again").is_none(), "{event}");
        (event["host"].as_str().unwrap().to_owned(), event["n"].as_u64().unwrap())
    };
    text.lines().map(event).collect()
}

/// Reads until there were so many, and then once more.
fn all_of(user: &Sandbox, reader: &str, count: usize) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    eventually(&format!("{count} events"), TEST_TIMEOUT, || {
        all.extend(told(user, reader));
        if all.len() >= count { Ok(()) } else { Err(all.clone()) }
    });
    all.extend(told(user, reader));
    all
}

#[test]
fn every_event_of_every_host_reaches_a_named_reader_once_whoever_dies() {
    let Some(mut broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let mut first = Host::join(&broker, "one", &[]);
    let second = Host::join(&broker, "two", &[]);
    sees(&user, &["one", "two"]);
    let run = |host: &Host, count: usize| {
        for _ in 0..count {
            host.box_.run(["run", "-d", "true"]).ok();
        }
    };
    run(&first, 3);
    run(&second, 2);
    assert_eq!(all_of(&user, "bot", 5).len(), 5);
    // The node is gone while things happen, and they are acknowledged at home before it is back.
    first.kill();
    run(&first, 3);
    eventually("three more are in the outbox", TEST_TIMEOUT, || {
        let said = first.box_.run(["events", "--since", "3"]).ok();
        if said.text().lines().count() == 3 { Ok(()) } else { Err(said.to_string()) }
    });
    first.box_.run(["events", "--ack-all"]).ok();
    broker.kill();
    run(&second, 2);
    broker.run();
    first.start(&[], &[]);
    let mut more = all_of(&user, "bot", 5);
    more.sort();
    let expected: Vec<(String, u64)> = [("one", 4), ("one", 5), ("one", 6), ("two", 3), ("two", 4)]
        .map(|(host, n)| (host.to_owned(), n))
        .to_vec();
    assert_eq!(more, expected);
    // Another reader begins with the oldest.
    assert_eq!(all_of(&user, "other", 10).len(), 10);
}
