//! Orders that any host may take: each is carried out once, whoever dies and when.

use std::path::Path;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde_json::Value;

use super::{Broker, Host, sees};
use crate::sandbox;

/// What ran, as the commands themselves have written it down outside of every home.
fn ran(judge: &Path) -> Vec<String> {
    let mut lines: Vec<String> =
        std::fs::read_to_string(judge).unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Orders commands that each append their number to the judge's file.
fn order(user: &Sandbox, judge: &Path, numbers: std::ops::Range<usize>, more: &[&str]) -> Vec<String> {
    let lines: String =
        numbers.map(|n| format!("{{\"command\": \"echo {n:04} >> {}\"}}\n", judge.display())).collect();
    let file = user.root().join("batch.jsonl");
    std::fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let said = user.run([&["submit", "--on", "build", "--file", file][..], more].concat()).ok();
    said.text().lines().map(str::to_owned).collect()
}

fn record(user: &Sandbox, id: &str) -> Option<Value> {
    let shown = user.run(["--json", "order", "show", id]);
    (shown.code == Some(0)).then(|| shown.json())
}

fn all_over(user: &Sandbox, ids: &[String]) {
    eventually("all orders are over", TEST_TIMEOUT, || {
        let all = user.json(["order", "list"]);
        let is_over = |id: &String| {
            all["orders"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["order"]["id"] == **id && one["stage"] == "ended")
        };
        let open: Vec<&String> = ids.iter().filter(|id| !is_over(id)).collect();
        if open.is_empty() { Ok(()) } else { Err(format!("{} are open", open.len())) }
    });
}

#[test]
fn orders_are_carried_out_once_by_whoever_has_a_free_slot() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let judge = user.root().join("judge");
    // Before there is any host.
    let ids = order(&user, &judge, 0..20, &[]);
    assert!(ran(&judge).is_empty());
    let _one = Host::join(&broker, "one", &["--label", "build", "--slots", "2"]);
    let _two = Host::join(&broker, "two", &["--label", "build", "--slots", "2"]);
    sees(&user, &["one", "two"]);
    all_over(&user, &ids);
    assert_eq!(ran(&judge), (0..20).map(|n| format!("{n:04}")).collect::<Vec<_>>());
    let code = user.run(["submit", "--on", "build", "--wait", "exit 7"]);
    assert_eq!(code.code, Some(7), "{code}");
    let results = user.run(["order", "results", "--json"]).ok();
    assert_eq!(results.text().lines().count(), 21);
    assert_eq!(record(&user, &ids[0]).unwrap()["order"]["by"], "alice");
}

#[test]
fn a_node_that_dies_between_any_two_steps_neither_loses_nor_repeats_an_order() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let judge = user.root().join("judge");
    let options = ["--label", "build", "--slots", "1"];
    let mut host = Host::join(&broker, "one", &["--label", "none"]);
    sees(&user, &["one"]);
    host.kill();
    for (at, point) in ["claimed", "filed", "acknowledged", "started"].into_iter().enumerate() {
        let ids = order(&user, &judge, at..at + 1, &[]);
        host.start(&options, &[("OUTLAST_NODE_STOPS_AT", point)]);
        host.gone();
        let before = ran(&judge).len();
        assert!(before <= at + usize::from(point == "started"), "{point}: {before}");
        host.start(&options, &[]);
        all_over(&user, &ids);
        assert_eq!(ran(&judge).len(), at + 1, "{point}");
        host.kill();
    }
    assert_eq!(ran(&judge), ["0000", "0001", "0002", "0003"]);
}

#[test]
fn another_hosts_claim_is_left_alone_until_it_is_given_back() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let judge = user.root().join("judge");
    let options = ["--label", "build", "--slots", "1"];
    let mut one = Host::join(&broker, "one", &["--label", "none"]);
    sees(&user, &["one"]);
    one.kill();
    let ids = order(&user, &judge, 0..1, &[]);
    one.start(&options, &[("OUTLAST_NODE_STOPS_AT", "claimed")]);
    one.gone();
    let _two = Host::join(&broker, "two", &options);
    let more = order(&user, &judge, 1..2, &[]);
    all_over(&user, &more);
    assert_eq!(ran(&judge), ["0001"], "the claimed one is not run by another");
    let status = user.run(["order", "show", &ids[0]]).ok();
    assert!(status.text().contains("claimed by one"), "{status}");
    one.start(&["--label", "none"], &[]);
    all_over(&user, &ids);
    assert_eq!(ran(&judge), ["0000", "0001"]);
    assert_eq!(record(&user, &ids[0]).unwrap()["host"], "two");
}

#[test]
fn orders_come_after_others_by_priority_and_can_be_cancelled() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let judge = user.root().join("judge");
    let append = |word: &str| format!("echo {word} >> {}", judge.display());
    let submit = |options: &[&str], line: &str| {
        let said = user.run([&["submit", "--on", "build"][..], options, &[line]].concat()).ok();
        said.text().trim().to_owned()
    };
    let low = submit(&["--priority", "low"], &append("3-low"));
    let normal = submit(&[], &append("2-normal"));
    let high = submit(&["--priority", "high"], &append("1-high"));
    let cancelled = submit(&[], &append("cancelled"));
    let fails = submit(&[], "exit 3");
    let follower = submit(&["--after", &low], &append("4-after"));
    let skipped = submit(&["--after", &fails], &append("skipped"));
    user.run(["order", "cancel", &cancelled]).ok();
    let _host = Host::join(&broker, "one", &["--label", "build", "--slots", "1"]);
    all_over(&user, &[low, normal, high, fails, follower, skipped.clone()]);
    let in_order = std::fs::read_to_string(&judge).unwrap();
    assert_eq!(in_order.lines().collect::<Vec<_>>(), ["1-high", "2-normal", "3-low", "4-after"]);
    assert_eq!(record(&user, &skipped).unwrap()["end"]["how"], "skipped");
    assert_eq!(record(&user, &cancelled).unwrap()["stage"], "cancelled");
    let long = submit(&[], "sleep 1000");
    eventually("it runs", TEST_TIMEOUT, || match record(&user, &long) {
        Some(record) if record["stage"] == "started" => Ok(()),
        other => Err(other),
    });
    user.run(["order", "cancel", &long]).ok();
    let next = submit(&["--wait"], "true");
    assert!(next.contains("completed"), "its slot is free again: {next}");
}

#[test]
fn a_node_that_drains_finishes_what_it_has_and_leaves() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let mut host = Host::join(&broker, "one", &["--label", "build", "--slots", "1"]);
    let gate = user.root().join("gate");
    let said = user.run([
        "submit",
        "--on",
        "build",
        &format!("until [ -e {} ]; do sleep 0.1; done", gate.display()),
    ]);
    let id = said.ok().text().trim().to_owned();
    eventually("it runs", TEST_TIMEOUT, || match record(&user, &id) {
        Some(record) if record["stage"] == "started" => Ok(()),
        other => Err(other),
    });
    let draining = host.box_.call(["node", "--drain"]).spawn();
    eventually("it drains", TEST_TIMEOUT, || {
        let status = user.json(["fleet", "status"]);
        if status["hosts"][0]["draining"] == true { Ok(()) } else { Err(status) }
    });
    std::fs::write(&gate, "").unwrap();
    draining.wait().ok();
    host.gone();
    assert_eq!(record(&user, &id).unwrap()["stage"], "ended");
    sees(&user, &[]);
}

/// Orders of a lost host are looked for after 15 s at the earliest: too long for every run.
#[test]
fn an_order_that_a_lost_host_has_not_started_goes_elsewhere_and_stays_there() {
    if std::env::var_os("OUTLAST_LONG_TESTS").is_none_or(|value| value != "1") {
        return;
    }
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let judge = user.root().join("judge");
    let options = ["--label", "build", "--slots", "1"];
    let soon = |host: &Host| {
        let path = host.box_.root().join("config/outlast/fleet.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("lost_after_seconds = 3\n{text}")).unwrap();
    };
    let mut one = Host::join(&broker, "one", &["--label", "none"]);
    sees(&user, &["one"]);
    one.kill();
    let kept = order(&user, &judge, 0..1, &["--retry", "never"]);
    one.start(&options, &[("OUTLAST_NODE_STOPS_AT", "acknowledged")]);
    one.gone();
    let moved = order(&user, &judge, 1..2, &["--retry", "if-not-started"]);
    one.start(&options, &[("OUTLAST_NODE_STOPS_AT", "acknowledged")]);
    // It goes on with the first, and dies again with the second.
    one.gone();
    let mut two = Host { box_: sandbox(), name: "two".into(), node: None };
    broker.tell(&two.box_, "two");
    soon(&two);
    two.start(&options, &[]);
    eventually("another host runs it", TEST_TIMEOUT, || {
        let lines = ran(&judge);
        if lines.contains(&"0001".to_owned()) { Ok(()) } else { Err(lines.join(" ")) }
    });
    one.start(&options, &[]);
    all_over(&user, &kept);
    eventually("the first host has let go of it", TEST_TIMEOUT, || {
        let record = record(&user, &moved[0]).unwrap();
        if record["stage"] == "cancelled" { Ok(()) } else { Err(record) }
    });
    sees(&user, &["one", "two"]);
    assert_eq!(ran(&judge), ["0000", "0001"], "each once");
}
