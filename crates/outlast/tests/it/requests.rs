//! Every request of the closed set, answered by a real home, with requests and answers sent as text: what crosses this
//! border can cross a pipe to another machine.

use outlast_job::request::{
    Ack, Answer, AskKeepers, BytePart, Grep, JobRequest, JobWait, Lines, List, Moment, PruneLimits,
    ReadBytes, ReadText, Request, Screen, SessionEvents, Stream, WaitAny,
};
use outlast_job::{Condition, Failure, Handle, JobSpec, Outlast, Send, Size, Streams, Wait};
use outlast_testkit::{Sandbox, TEST_TIMEOUT};

use super::sandbox;

/// A host behind a wire.
struct Host(Outlast);

impl Host {
    fn new(sandbox: &Sandbox) -> Self {
        Self(Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program()))
    }

    fn try_ask(&self, request: &Request) -> Result<Answer, Failure> {
        let request = serde_json::from_str(&serde_json::to_string(request).unwrap()).unwrap();
        let answer = serde_json::to_string(&self.0.answer(request)?).unwrap();
        Ok(serde_json::from_str(&answer).unwrap())
    }

    #[track_caller]
    fn ask(&self, request: &Request) -> Answer {
        self.try_ask(request).unwrap()
    }

    #[track_caller]
    fn about(&self, job: Handle, ask: JobRequest) -> Answer {
        self.ask(&Request::Job { job, ask })
    }

    #[track_caller]
    fn start(&self, line: &str, streams: Streams) -> Handle {
        let mut start = JobSpec::shell(line);
        start.description = Some("a test".into());
        start.cwd = Some("/".into());
        start.set_env("WHO", "world");
        start.streams = streams;
        start.session = "far".into();
        start.notify = Some(vec![Condition::Exit]);
        match self.ask(&Request::Start(Box::new(start))) {
            Answer::Started(job) => job,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn wait(&self, waits: Vec<(Handle, Wait)>) -> (usize, &'static str) {
        let waits = waits.into_iter().map(|(job, wait)| JobWait { job, wait }).collect();
        let timeout_ms = u64::try_from(TEST_TIMEOUT.as_millis()).ok();
        match self.ask(&Request::Wait(WaitAny { waits, timeout_ms })) {
            Answer::Waited { which, waited } => (which, waited.reason.name()),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn text(&self, job: Handle, read: ReadText) -> String {
        match self.about(job, JobRequest::ReadText(read)) {
            Answer::Text(text) => text.joined(|from, to| format!("{from}-{to}")),
            other => panic!("{other:?}"),
        }
    }
}

fn whole(max: usize) -> ReadText {
    ReadText { max, ..ReadText::default() }
}

#[test]
fn a_job_lives_its_whole_life_by_requests_alone() {
    let sandbox = sandbox();
    let host = Host::new(&sandbox);
    let terminal = Streams::Terminal(Size { cols: 80, rows: 24 });
    let job = host.start("echo hello $WHO; pwd; read name; echo bye $name; exit 3", terminal);
    let other = host.start("read x", terminal);
    // Each of them from its own beginning; the first ends it.
    let asks = |job| (job, Wait::for_pattern("hello world"));
    assert_eq!(host.wait(vec![asks(other), asks(job)]), (1, "pattern"));
    host.wait(vec![(job, Wait::for_pattern("/\\s"))]);

    assert!(
        matches!(host.ask(&Request::Find { job: job.to_string() }), Answer::Found(found) if found == job)
    );
    let Answer::Info(info) = host.about(job, JobRequest::Info { shown: false }) else { panic!("an info") };
    assert_eq!((info.session.as_str(), info.cwd.as_str(), info.state.name()), ("far", "/", "running"));
    assert!(matches!(host.about(job, JobRequest::Receipt), Answer::Receipt(None)));
    assert!(matches!(host.about(job, JobRequest::Status), Answer::Status(Some(_))));
    let Answer::Screen(screen) = host.about(job, JobRequest::Screen(Screen::default())) else {
        panic!("a screen")
    };
    assert_eq!((screen.rows[0].as_str(), screen.size.cols), ("hello world", 80));
    let size = Size { cols: 100, rows: 30 };
    assert!(matches!(host.about(job, JobRequest::Resize { size }), Answer::Done {}));
    assert!(matches!(host.about(job, JobRequest::Watches), Answer::Watches(watches) if watches.is_empty()));

    let list = List { keepers: AskKeepers::All, last_lines: true, ..List::default() };
    let Answer::Jobs(jobs) = host.ask(&Request::List(list.clone())) else { panic!("a list") };
    assert_eq!(jobs.len(), 2);
    assert!(jobs[0].now.is_some(), "its keeper was asked");
    let Answer::Jobs(none) = host.ask(&Request::List(List { session: Some("nobody".into()), ..list })) else {
        panic!("a list")
    };
    assert!(none.is_empty());

    let send = Send { text: "moon".into(), newline: true, ..Send::default() };
    let Answer::Sent(sent) = host.about(job, JobRequest::Send { send, timeout_ms: None }) else {
        panic!("sent")
    };
    assert!(sent.taken > 0);
    assert_eq!(host.wait(vec![(job, Wait::for_exit())]), (0, "exit"));
    let Answer::Receipt(Some(receipt)) = host.about(job, JobRequest::Receipt) else { panic!("a receipt") };
    assert_eq!(receipt.outcome, outlast_job::lifecycle::Outcome::Exited { code: 3 });
    assert!(host.text(job, whole(1000)).ends_with("bye moon\n"));
    let Answer::LastScreen(Some(last)) = host.about(job, JobRequest::LastScreen) else {
        panic!("a last screen")
    };
    assert!(last.contains("bye moon"));
    // As it was before anything was typed.
    let at = Some(Moment::Offset(sent.offset));
    let Answer::Screen(then) = host.about(job, JobRequest::Screen(Screen { at, ..Screen::default() })) else {
        panic!("a screen")
    };
    assert!(then.rows[0] == "hello world" && !then.rows.iter().any(|row| row.contains("moon")), "{then:?}");
    assert!(
        matches!(host.about(job, JobRequest::Timing { from: 0 }), Answer::Timing(timing) if !timing.facts.is_empty())
    );
    let Answer::EventLines(lines) = host.about(job, JobRequest::EventLines { max: 1 << 16 }) else {
        panic!("events")
    };
    assert!(lines.lines().all(|line| line.starts_with('{')), "{lines}");

    let Answer::Killed(killed) = host.about(other, JobRequest::Kill { grace_ms: 200, session: "far".into() })
    else {
        panic!("killed")
    };
    assert!(killed.signalled > 0);
}

#[test]
fn a_log_is_read_by_ranges_and_each_answer_is_bounded() {
    let sandbox = sandbox();
    let host = Host::new(&sandbox);
    let job = host.start("for i in $(seq 1 5000); do echo line $i; done; echo oops >&2", Streams::Pipes);
    host.wait(vec![(job, Wait::for_exit())]);
    let Answer::End(end) = host.about(job, JobRequest::End { stream: Stream::Output }) else {
        panic!("an end")
    };

    // Bytes in pieces, each of which says where to go on.
    let mut read = ReadBytes { max: 4000, ..ReadBytes::default() };
    let mut all = Vec::new();
    loop {
        let Answer::Bytes(bytes) = host.about(job, JobRequest::ReadBytes(read)) else { panic!("bytes") };
        assert_eq!(bytes.end, end);
        for part in bytes.parts {
            let BytePart::Bytes(part) = part else { panic!("nothing is lost") };
            assert!(part.len() <= 4000);
            all.extend(part);
        }
        if bytes.next >= bytes.end {
            break;
        }
        read.from = bytes.next;
    }
    let expected: String = (1..=5000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(all).unwrap(), expected);

    // Text keeps to its bound, and what was left out can be read by its offsets.
    let Answer::Text(text) = host.about(job, JobRequest::ReadText(whole(2000))) else { panic!("text") };
    assert!(text.head.len() + text.tail.len() <= 2000 && text.ends_line);
    let (from, to) = text.omitted.unwrap();
    let middle = host.text(job, ReadText { from, to: Some(to), max: 1 << 20, ..ReadText::default() });
    assert_eq!(format!("{}{middle}{}", text.head, text.tail), expected);

    assert_eq!(
        host.text(job, ReadText { lines: Some(Lines::Last(2)), ..whole(100) }),
        "line 4999\nline 5000\n"
    );
    assert_eq!(host.text(job, ReadText { lines: Some(Lines::First(1)), ..whole(100) }), "line 1\n");
    assert_eq!(host.text(job, ReadText { stream: Stream::Stderr, ..whole(100) }), "oops\n");
    let grep = Grep { range: whole(25), pattern: "^line 49[0-9]{2}$".into() };
    let Answer::Matches(matches) = host.about(job, JobRequest::Grep(grep)) else { panic!("matches") };
    let shown: Vec<(u64, &str)> =
        matches.lines.iter().map(|line| (line.number, line.text.as_str())).collect();
    assert_eq!(shown, [(4900, "line 4900"), (4901, "line 4901")]);
    assert_eq!((matches.found, matches.searched, matches.omitted_bytes), (100, 5000, 980));
    let bad = JobRequest::Grep(Grep { range: whole(25), pattern: "(".into() });
    assert_eq!(host.try_ask(&Request::Job { job, ask: bad }).unwrap_err().kind, outlast_job::Kind::Usage);
}

#[test]
fn a_session_reads_its_events_and_acknowledges_them() {
    let sandbox = sandbox();
    let host = Host::new(&sandbox);
    let job = host.start("true", Streams::Pipes);
    host.wait(vec![(job, Wait::for_exit())]);
    let events = |after| {
        let request = Request::Events(SessionEvents { session: "far".into(), after });
        match host.ask(&request) {
            Answer::Events(events) => events,
            other => panic!("{other:?}"),
        }
    };
    outlast_testkit::eventually("its end is told", TEST_TIMEOUT, || {
        if events(None).is_empty() { Err("nothing yet") } else { Ok(()) }
    });
    let told = events(None);
    assert_eq!(told[0]["job"], job.number());
    let ack = Ack { session: "far".into(), up_to: told[0]["n"].as_u64(), reader: None };
    assert!(matches!(host.ask(&Request::Ack(ack)), Answer::Acknowledged(number) if number > 0));
    assert!(events(None).is_empty());
    assert!(
        matches!(host.ask(&Request::Prune { dry_run: true, limits: PruneLimits::default() }), Answer::Pruned(pruned) if pruned.removed.is_empty())
    );
}
