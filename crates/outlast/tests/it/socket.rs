//! The keeper's socket, by hand: it survives everything, and others are served meanwhile.

use serde_json::json;

use outlast_testkit::{Socket, TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn a_person_can_talk_to_a_keeper() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["asks"]);
    let mut socket = Socket::connect(&sandbox.job(job)).unwrap();
    let hello = socket.hear().unwrap();
    assert_eq!((&hello["outlast"], &hello["handle"]), (&1.into(), &1.into()), "{hello}");
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"), "{hello}");
    let waited = socket.ask(&json!({"id": 3, "verb": "wait", "patterns": ["name\\?"], "from": 0}));
    assert_eq!(waited["waited"]["reason"], "pattern", "{waited}");
    let status = socket.ask(&json!({"id": 4, "verb": "status"}));
    assert_eq!(status["status"]["info"]["status"], "running", "{status}");
    // Asked before it ends: a keeper that is done closes the connection.
    socket.say(b"{\"id\":6,\"verb\":\"wait\",\"exit\":true}\n").unwrap();
    let sent = socket.ask(&json!({"id": 5, "verb": "send", "text": "Ada", "newline": true}));
    assert_eq!(sent["sent"]["taken"], 4, "{sent}");
    let waited = socket.hear().unwrap()["reply"].clone();
    assert_eq!((&waited["id"], &waited["waited"]["reason"]), (&6.into(), &"exit".into()), "{waited}");
    assert_eq!(socket.hear(), None);
}

#[test]
fn nonsense_is_answered_or_cut_off_and_others_are_served() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let keeper = sandbox.pid(job, "keeper");
    let lines: [&[u8]; 8] = [
        b"garbage\n",
        b"\n\n\n{}\n",
        b"[1,2,3]\n",
        b"{\"id\":1,\"verb\":\"frobnicate\"}\n",
        b"{\"id\":1,\"verb\":\"kill\"}\n",
        b"{\"id\":-1,\"verb\":\"status\"}\n",
        b"\xff\xfe\0\x01\n",
        b"{\"id\":1,\"verb\":\"wait\",\"patterns\":[\"(\"]}\n",
    ];
    for line in lines {
        let mut socket = sandbox.socket(job);
        socket.say(line).unwrap();
        let reply = socket.hear().expect("an answer");
        assert!(reply["reply"]["error"]["message"].is_string(), "{reply}");
        // And the same connection still works.
        let status = socket.ask(&json!({"id": 77, "verb": "status"}));
        assert_eq!(status["status"]["info"]["handle"], 1);
    }
    // Half a line, and gone.
    let mut half = sandbox.socket(job);
    half.say(b"{\"id\":1,\"ver").unwrap();
    drop(half);
    // A line without an end is cut off.
    let mut endless = sandbox.socket(job);
    let _ = endless.say(&vec![b'x'; 2 << 20]);
    endless.drain();
    // A line in pieces is one line.
    let mut pieces = sandbox.socket(job);
    for byte in b"{\"id\":9,\"verb\":\"status\"}\n" {
        pieces.say(&[*byte]).unwrap();
    }
    let status = pieces.hear().unwrap();
    assert_eq!(status["reply"]["status"]["info"]["handle"], 1, "{status}");
    assert_eq!(sandbox.pid(job, "keeper"), keeper, "the same keeper all along");
    assert_eq!(sandbox.info(job)["takeovers"], 0);
}

#[test]
fn three_hundred_connections_at_once() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    let crowd: Vec<Socket> = (0..300).map(|_| Socket::connect(&sandbox.job(job)).unwrap()).collect();
    let mut let_in = Vec::new();
    for mut socket in crowd {
        assert_eq!(socket.hear().expect("everybody is greeted")["handle"], 1);
        // Those beyond the limit are turned away with a reason, not left hanging.
        let _ = socket.say(b"{\"id\":1,\"verb\":\"status\"}\n");
        let answer = socket.hear().map(|line| line["reply"].clone());
        match answer {
            Some(reply) if reply["status"]["info"]["handle"] == 1 => let_in.push(socket),
            Some(reply) => {
                assert!(reply["error"]["message"].as_str().unwrap().contains("clients"), "{reply}")
            }
            // Its place went to somebody who came later.
            None => {}
        }
    }
    assert!(let_in.len() >= 200, "{} were let in", let_in.len());
    drop(let_in);
    eventually("there is room again", TEST_TIMEOUT, || {
        let row = sandbox.json(["jobs"])["jobs"][0].clone();
        if row["activity"].is_string() { Ok(()) } else { Err(row) }
    });
    assert_eq!(sandbox.info(job)["takeovers"], 0);
}

#[test]
fn a_client_that_never_reads_slows_nobody() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-when-told", "done"]);
    let mut deaf = sandbox.socket(job);
    deaf.say(b"{\"id\":1,\"verb\":\"follow\"}\n").unwrap();
    deaf.give_up_sending_after(std::time::Duration::from_millis(100));
    for _ in 0..3000 {
        // Each answer has the job's whole record in it; nobody takes them.
        if deaf.say(b"{\"id\":2,\"verb\":\"status\"}\n").is_err() {
            break;
        }
    }
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
    drop(deaf);
    sandbox.nothing_runs();
}
