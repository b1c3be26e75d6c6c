//! A person who takes a job over in the page: agents are told so, and nothing that they type is queued.

use outlast_testkit::{TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::client::Served;
use crate::sandbox;

#[test]
fn while_a_person_holds_a_job_nobody_else_types_into_it() {
    let sandbox = sandbox();
    let job = sandbox.start(["while read line; do echo \"[$line]\"; done"]);
    let name = job.to_string();
    let served = Served::start(&sandbox, &[]);
    let page = served.page();
    let mut socket = page.socket();
    socket.say(
        &json!({ "t": "open", "job": name, "channel": 1, "bytes": true, "size": { "cols": 90, "rows": 20 } }),
    );
    assert!(socket.hear_of("size").is_some());
    page.call(&json!({ "call": "hold", "job": name, "take": true }));
    sandbox.run(["send", &name, "from an agent"]).code(5).says("held by a person");
    socket.say(&json!({ "t": "keys", "job": name, "data": "from a person\r" }));
    sandbox.wait_for_text(job, r"\[from a person\]");
    page.call(&json!({ "call": "hold", "job": name, "take": false }));
    sandbox.run(["send", &name, "again", "--pattern", r"\[again\]"]).ok();
    let log = String::from_utf8_lossy(&sandbox.log(job)).into_owned();
    assert!(!log.contains("from an agent"), "what was refused is not typed later: {log}");
    let words: Vec<Value> = sandbox.events(job).iter().map(|event| event["event"].clone()).collect();
    let at = |word: &str| words.iter().position(|other| other == word);
    assert!(at("taken").unwrap() < at("given_back").unwrap(), "{words:?}");
}

#[test]
fn a_page_that_is_loaded_again_still_holds_its_job() {
    let sandbox = sandbox();
    let job = sandbox.start(["cat"]);
    let name = job.to_string();
    let served = Served::start(&sandbox, &[]);
    let page = served.page();
    let open =
        json!({ "t": "open", "job": name, "channel": 1, "bytes": true, "size": { "cols": 80, "rows": 24 } });
    let mut socket = page.socket();
    socket.say(&open);
    assert!(socket.hear_of("size").is_some());
    page.call(&json!({ "call": "hold", "job": name, "take": true }));
    drop(socket);
    let mut again = page.socket();
    again.say(&open);
    assert!(again.hear_of("size").is_some());
    sandbox.run(["send", &name, "x"]).code(5).says("held by a person");
    let held = page.call(&json!({ "call": "job", "job": name }));
    assert_eq!(held["held_by"], "a person in the web view");
}

#[test]
fn the_size_is_that_of_the_person_while_they_type() {
    let sandbox = sandbox();
    let job = sandbox.start(["--size", "120x40", "cat"]);
    let name = job.to_string();
    let served = Served::start(&sandbox, &[]);
    let page = served.page();
    let mut socket = page.socket();
    socket.say(&json!({ "t": "open", "job": name, "channel": 1, "bytes": true }));
    let looked = socket.hear_of("size").unwrap();
    assert_eq!(looked["size"], json!({ "cols": 120, "rows": 40 }), "who looks changes nothing");
    socket.say(
        &json!({ "t": "open", "job": name, "channel": 2, "bytes": true, "size": { "cols": 70, "rows": 20 } }),
    );
    let typed = socket.hear_of("size").unwrap();
    assert_eq!(typed["size"], json!({ "cols": 70, "rows": 20 }));
    drop(socket);
    eventually("the job has its own size again", TEST_TIMEOUT, || {
        let size = page.call(&json!({ "call": "job", "job": name }))["size"].clone();
        if size == json!({ "cols": 120, "rows": 40 }) { Ok(()) } else { Err(size) }
    });
}
