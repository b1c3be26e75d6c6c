//! A flood of updates of the agent's own stream passes the sidecar as fast at its end as at its start, however many events
//! wait; and a prompt in between is answered.
//!
//! `ACP_FLOOD=100000` runs it at full size, where times are judged too. A small one judges what the sidecar reads and writes.

use std::time::{Duration, Instant};

use outlast_testkit::{Conversation, TEST_TIMEOUT};
use serde_json::json;

use super::prompt;
use super::sidecar::{SESSION, Stand};

const SMALL: usize = 10_000;
const FULL: usize = 100_000;

/// How each tenth of a flood passed.
#[derive(Debug)]
struct Passed {
    times: Vec<Duration>,
    /// Bytes that the sidecar has read and written.
    bytes: Vec<u64>,
    /// How many updates had passed when a prompt from the middle was answered, and after what time.
    answered: (usize, Duration),
}

fn io_bytes(editor: &Conversation) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", editor.pid())).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    field("rchar:") + field("wchar:")
}

fn flood(options: &[&str], count: usize) -> Passed {
    let stand = Stand::new(options);
    let mut editor = stand.open();
    editor.call("session/prompt", prompt(SESSION, &format!("flood {count}")));
    let (mut began, mut bytes_before) = (Instant::now(), io_bytes(&editor));
    let mut passed = Passed { times: Vec::new(), bytes: Vec::new(), answered: (0, Duration::ZERO) };
    let mut asked: Option<(u64, Instant)> = None;
    let mut seen = 0;
    while seen < count || passed.answered.0 == 0 {
        let message = editor.next_message(TEST_TIMEOUT).unwrap();
        if let Some((id, at)) = asked
            && message["id"] == json!(id)
            && message.get("method").is_none()
        {
            passed.answered = (seen, at.elapsed());
        }
        if message["params"]["update"]["toolCallId"] != "shell-1" {
            continue;
        }
        seen += 1;
        assert_eq!(message["params"]["update"]["content"][0]["content"]["text"], format!("EV:{seen}"));
        if seen == count / 2 {
            asked = Some((editor.ask("session/prompt", prompt(SESSION, "say here")), Instant::now()));
        }
        if seen % (count / 10) == 0 {
            passed.times.push(began.elapsed());
            passed.bytes.push(io_bytes(&editor) - bytes_before);
            (began, bytes_before) = (Instant::now(), io_bytes(&editor));
        }
    }
    passed
}

#[test]
fn a_flood_is_as_fast_at_its_end_and_holds_up_no_prompt() {
    let count = std::env::var("ACP_FLOOD").map_or(SMALL, |count| count.parse().unwrap());
    let woken = flood(&["--window", "100ms"], count);
    assert!(woken.answered.0 < count, "the prompt waited for the whole flood: {woken:?}");
    // What waits is read again and again if it grows with the events.
    assert!(woken.bytes[9] < woken.bytes[0].max(1 << 20) * 8, "{woken:?}");
    if count >= FULL {
        let left_alone = flood(&["--no-wake"], count);
        println!("waking: {woken:?}\nnot waking: {left_alone:?}");
        assert!(woken.times[9] < woken.times[0].mul_f64(1.2), "{woken:?}");
        let total = |passed: &Passed| passed.times.iter().sum::<Duration>();
        assert!(total(&woken) < total(&left_alone) * 2, "{woken:?} {left_alone:?}");
    }
}
