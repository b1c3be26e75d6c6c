//! What goes over a pipe: every request and answer comes back as it was, and what is missing has its default.

use super::*;
use crate::Condition;

/// One of each.
fn examples() -> Vec<Request> {
    let job = |ask| Request::Job { job: Handle::new(3), ask };
    let session = || "s".to_owned();
    let range =
        ReadText { from: 5, to: Some(9), lines: Some(Lines::Last(2)), max: 100, ..ReadText::default() };
    let start = || {
        let mut spec = JobSpec::shell("echo hi");
        spec.set_env("A", "b");
        spec.unset_env("B");
        let timeout = Some(std::time::Duration::from_millis(1500));
        let notify = Some(vec![Condition::Exit, Condition::Quiet { ms: 5 }]);
        let (name, wakes) = (Some("x".into()), vec![serde_json::json!({"kind": "codex"})]);
        Box::new(JobSpec { name, timeout, notify, wakes, for_agent: true, ..spec })
    };
    vec![
        Request::Start(start()),
        Request::PlanWakes(start()),
        Request::Find { job: "web".into() },
        Request::FindShell { scope: session(), name: "main".into() },
        job(JobRequest::Step(Box::new(StepOrder { command: "cd /".into(), ..StepOrder::default() }))),
        job(JobRequest::Shell { brief: true }),
        job(JobRequest::EndStep { step: Some(2), grace_ms: 200, session: session() }),
        Request::List(List { keepers: AskKeepers::OfSession(session()), ..List::default() }),
        Request::Wait(WaitAny {
            waits: vec![JobWait { job: Handle::new(1), wait: Wait::for_exit() }],
            timeout_ms: Some(10),
        }),
        Request::Load {},
        Request::Events(SessionEvents { session: session(), after: Some(4) }),
        Request::Ack(Ack { session: session(), up_to: None, reader: Some("r".into()) }),
        Request::Remove { job: Handle::new(1) },
        job(JobRequest::Details),
        job(JobRequest::Pin { pinned: true }),
        Request::Prune { dry_run: true, limits: PruneLimits { jobs: Some(3), ..PruneLimits::default() } },
        job(JobRequest::Info { shown: true }),
        job(JobRequest::Receipt),
        job(JobRequest::Status),
        job(JobRequest::Processes),
        job(JobRequest::LeftBehind),
        job(JobRequest::Hide { text: "x".into() }),
        job(JobRequest::Files),
        job(JobRequest::End { stream: Stream::Stderr }),
        job(JobRequest::ReadText(range)),
        job(JobRequest::ReadBytes(ReadBytes { stream: Stream::Stderr, max: 7, ..ReadBytes::default() })),
        job(JobRequest::Grep(Grep { range, pattern: "x".into() })),
        job(JobRequest::Screen(Screen { at: Some(Moment::Time(5)), ..Screen::default() })),
        job(JobRequest::LastScreen),
        job(JobRequest::Outcome),
        job(JobRequest::Timing { from: 7 }),
        job(JobRequest::EventLines { max: 10 }),
        job(JobRequest::Send { send: Send { text: "x".into(), ..Send::default() }, timeout_ms: None }),
        job(JobRequest::Secret { value: SecretText::default(), force: false }),
        job(JobRequest::Typed),
        job(JobRequest::Kill { grace_ms: 200, session: session() }),
        job(JobRequest::Signal { signal: "INT".into(), session: session() }),
        job(JobRequest::Hold(Hold { holder: "h".into(), by: session(), take: true })),
        job(JobRequest::Resize { size: Size::default() }),
        job(JobRequest::Watch { watch: Watch::default() }),
        job(JobRequest::Watches),
        job(JobRequest::Unwatch { watch: "w".into() }),
    ]
}

#[test]
fn every_request_survives_a_wire() {
    for request in examples() {
        let text = serde_json::to_string(&request).unwrap();
        let again: Request = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}

#[test]
fn what_a_newer_side_adds_is_ignored() {
    let text =
        r#"{"request":"job","job":3,"ask":{"ask":"read_text","from":1,"max":2,"invented":{"x":1}},"more":0}"#;
    let Request::Job { job, ask: JobRequest::ReadText(read) } = serde_json::from_str(text).unwrap() else {
        panic!("{text}")
    };
    assert_eq!((job, read.from, read.max), (Handle::new(3), 1, 2));
}

#[test]
fn bytes_survive_a_wire_as_they_are() {
    let bytes = Bytes {
        from: 1,
        parts: vec![BytePart::Bytes(vec![0, 0xff, 0x80]), BytePart::Lost { from: 4, to: 9 }],
        next: 9,
        end: 12,
    };
    let text = serde_json::to_string(&Answer::Bytes(bytes.clone())).unwrap();
    let Answer::Bytes(again) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(again, bytes);
}

#[test]
fn what_was_left_out_is_named_between_head_and_tail() {
    let text = Text { head: "a".into(), tail: "z".into(), omitted: Some((1, 9)), ..Text::default() };
    let joined = text.joined(|from, to| format!("read {from} {to}"));
    assert_eq!(joined, "a\n[... 8 bytes left out; to read them: read 1 9 ...]\nz");
    assert_eq!(Text { head: "a".into(), ..Text::default() }.joined(|_, _| String::new()), "a");
}
