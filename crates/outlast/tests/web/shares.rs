//! Links for others: one job, only its screen, without its secrets, and only for a while.

use serde_json::json;

use crate::client::{Page, Served};
use crate::sandbox;

fn guest(served: &Served, share: &serde_json::Value) -> Page {
    let url = share["url"].as_str().unwrap();
    served.enter(json!({ "share": url.split("#share=").nth(1).unwrap() })).expect("the link gets somebody in")
}

#[test]
fn a_share_shows_the_screen_of_one_job_and_no_more() {
    let sandbox = sandbox();
    let secret = "hunter2-hunter2-hunter2";
    let line = "echo shown $API_TOKEN; sleep 600";
    let job =
        sandbox.call(["--json", "run", "-d", line]).env("API_TOKEN", secret).run().ok().json()["handle"]
            .to_string();
    sandbox.wait_for_text(job.parse().unwrap(), "shown");
    let other = sandbox.start(["echo other; sleep 600"]).to_string();
    let served = Served::start(&sandbox, &[]);
    let share = sandbox.json(["web", "share", &job, "--read-only", "--for", "1h"]);
    let guest = guest(&served, &share);
    let screen = guest.call(&json!({ "call": "screen", "job": job })).to_string();
    assert!(screen.contains("shown") && !screen.contains(secret), "{screen}");
    let about = guest.call(&json!({ "call": "job", "job": job }));
    assert!(about["folder"].is_null() && about["session"].is_null(), "{about}");
    for call in [
        json!({ "call": "screen", "job": other }),
        json!({ "call": "job", "job": other }),
        json!({ "call": "screen", "job": format!("0{job}") }),
        json!({ "call": "screen", "job": job, "at_ms": 1 }),
        json!({ "call": "text", "job": job, "from": 0 }),
        json!({ "call": "grep", "job": job, "pattern": "." }),
        json!({ "call": "timeline", "job": job }),
        json!({ "call": "inbox" }),
        json!({ "call": "export", "job": job, "format": "cast" }),
        json!({ "call": "send", "job": job, "text": "x" }),
        json!({ "call": "secret", "job": job, "value": "x" }),
        json!({ "call": "hold", "job": job, "take": true }),
        json!({ "call": "kill", "job": job }),
        json!({ "call": "answer", "job": job, "question": 1, "allow": true }),
    ] {
        let answer = guest.try_call(&call);
        assert_eq!(answer.status, 403, "{call}: {}", answer.text());
    }
}

#[test]
fn the_socket_of_a_share_gives_rows_and_never_bytes() {
    let sandbox = sandbox();
    let job = sandbox.start(["echo shown; sleep 600"]).to_string();
    let other = sandbox.start(["echo other; sleep 600"]).to_string();
    sandbox.wait_for_text(1, "shown");
    let served = Served::start(&sandbox, &[]);
    let guest = guest(&served, &sandbox.json(["web", "share", &job]));
    for asked in [
        json!({ "t": "jobs" }),
        json!({ "t": "tiles", "jobs": [job] }),
        json!({ "t": "keys", "job": job, "data": "x" }),
        json!({ "t": "open", "job": other, "channel": 1, "bytes": true }),
    ] {
        let mut socket = guest.socket();
        socket.say(&asked);
        let (kind, said) = socket.hear().unwrap();
        // The first message may be a ping.
        let said = if kind == 1 {
            serde_json::from_slice(&said).unwrap()
        } else {
            socket.hear_of("refused").unwrap()
        };
        assert_eq!(said["t"], "refused", "{asked}: {said}");
    }
    let mut socket = guest.socket();
    let size = json!({ "cols": 20, "rows": 5 });
    socket.say(&json!({ "t": "open", "job": job, "channel": 1, "bytes": true, "size": size }));
    loop {
        let (kind, said) = socket.hear().unwrap();
        assert_ne!(kind, 2, "a guest is sent no bytes");
        if kind == 1 {
            let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
            assert_eq!(said["t"], "rows", "{said}");
            assert_eq!(said["size"]["cols"], 120, "a guest changes no size: {said}");
            break;
        }
    }
}

#[test]
fn a_share_ends_when_it_is_revoked_or_over() {
    let sandbox = sandbox();
    let job = sandbox.start(["sleep 600"]).to_string();
    let served = Served::start(&sandbox, &[]);
    let share = sandbox.json(["web", "share", &job]);
    let guest_page = guest(&served, &share);
    let mut socket = guest_page.socket();
    assert_eq!(sandbox.json(["web", "shares"])["shares"][0]["job"], job);
    sandbox.run(["web", "revoke", &share["share"].to_string()]).ok();
    assert_eq!(guest_page.try_call(&json!({ "call": "hello" })).status, 401);
    assert_eq!(guest_page.socket_request().open().0, 401);
    assert!(std::iter::from_fn(|| socket.hear()).all(|(kind, _)| kind != 2), "an open socket is closed soon");
    sandbox.run(["web", "revoke", &share["share"].to_string()]).code(2).says("there is no share");
    let short = guest(&served, &sandbox.json(["web", "share", &job, "--for", "1500ms"]));
    assert_eq!(short.try_call(&json!({ "call": "hello" })).status, 200);
    outlast_testkit::eventually("a share is over after its time", outlast_testkit::TEST_TIMEOUT, || {
        match short.try_call(&json!({ "call": "hello" })).status {
            401 => Ok(()),
            other => Err(other),
        }
    });
}

#[test]
fn nobody_inside_a_job_shows_jobs_to_others() {
    let sandbox = sandbox();
    let program = sandbox.program().display().to_string();
    let job = sandbox.start([format!("{program} web share 1; echo code $?")]);
    sandbox.wait_for_text(job, "code 5");
}
