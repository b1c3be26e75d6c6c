//! Jobs of another machine through the API that doors use. The other machine is a second home, and a link that turns
//! every request and answer into text and back, as a pipe would.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_job::client::{Answered, Given, Link, News, Pace, Tell, Waiting};
use outlast_job::request::{Answer, List, ReadText, Request, SessionEvents, Subscription};
use outlast_job::wire::event::EventKind;
use outlast_job::wire::{Attach, WireFailure};
use outlast_job::{
    Condition, Failure, Input, Job, JobSpec, Kind, Outlast, Reason, Send, Streams, Wait, wait_any,
};
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sandbox;

/// A link that sends text, and notes what it sent.
#[derive(Debug)]
struct TextLink {
    far: Outlast,
    sent: Arc<Mutex<String>>,
}

fn again<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

impl TextLink {
    fn far(&self, masked: bool) -> Outlast {
        if masked { self.far.clone().masked() } else { self.far.clone() }
    }

    fn note(&self, what: &impl Serialize) {
        self.sent.lock().unwrap().push_str(&serde_json::to_string(what).unwrap());
    }
}

impl Link for TextLink {
    fn begin(&self, masked: bool, request: Request, answered: Answered) -> Result<Waiting, Failure> {
        self.note(&request);
        let there = move |answer: Result<Answer, Failure>| match answer {
            Ok(answer) => answered(Ok(again(&answer))),
            Err(failure) => answered(Err(again(&WireFailure::from(failure)).into())),
        };
        self.far(masked).begin(again(&request), Box::new(there))
    }

    fn subscribe(&self, masked: bool, to: Subscription, mut tell: Tell) -> Result<Waiting, Failure> {
        self.note(&to);
        self.far(masked).subscribe(&again(&to), move |news| tell(again(&news)))
    }
}

/// A machine that knows another one as `gpu1`.
struct Two {
    _near: Sandbox,
    far: Sandbox,
    outlast: Outlast,
    sent: Arc<Mutex<String>>,
}

impl Two {
    fn new() -> Self {
        let (near, far) = (sandbox(), sandbox());
        let sent = Arc::<Mutex<String>>::default();
        let host = Outlast::at(far.home()).unwrap().kept_by(far.program());
        let link = TextLink { far: host, sent: Arc::clone(&sent) };
        let outlast = Outlast::at(near.home()).unwrap().kept_by(near.program());
        Self { outlast: outlast.with_host("gpu1".parse().unwrap(), link), _near: near, far, sent }
    }

    fn start(&self, spec: JobSpec) -> Job {
        self.outlast.on("gpu1".parse().unwrap()).unwrap().start(spec).unwrap()
    }

    fn shell(&self, line: &str) -> Job {
        self.start(JobSpec { session: "far".into(), ..JobSpec::shell(line) })
    }
}

fn text(job: &Job) -> String {
    job.read(ReadText { max: 1 << 14, ..ReadText::default() }).unwrap().head
}

#[test]
fn a_job_elsewhere_is_started_read_waited_for_typed_into_and_killed() {
    let two = Two::new();
    let job = two.shell("echo ready; read name; echo hello $name; sleep 1000");
    assert_eq!(job.handle().to_string(), "gpu1/1");
    assert_eq!(job.info().unwrap().handle, job.handle(), "every answer names the host");
    assert!(two.far.job(1).is_dir(), "it is in the other home");
    assert!(two.outlast.jobs().is_empty(), "and not in this one");
    let waited =
        job.wait(&Wait::of([Condition::Pattern("ready".into())]).from(0), Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.reason, Reason::Pattern);
    job.send(&Send { text: "world".into(), newline: true, ..Send::default() }, None).unwrap();
    let hello = Wait::of([Condition::Pattern("hello world".into())]).from(0);
    assert_eq!(job.wait(&hello, Some(TEST_TIMEOUT)).unwrap().reason, Reason::Pattern);
    let found = two.outlast.job("gpu1/1").unwrap();
    assert!(text(&found).contains("hello world"), "{}", text(&found));
    let listed = two.outlast.on("gpu1".parse().unwrap()).unwrap().list(List::default());
    assert_eq!(listed[0].job.handle, job.handle());
    job.kill(Duration::ZERO, "far").unwrap();
    assert!(!job.info().unwrap().state.is_live());
    let told = || {
        let events = SessionEvents { session: "far".into(), after: None };
        two.outlast.on("gpu1".parse().unwrap()).unwrap().events(events).unwrap()
    };
    eventually("its end is told", TEST_TIMEOUT, || {
        if told().iter().any(|event| event["job"] == "gpu1/1") { Ok(()) } else { Err("not yet") }
    });
}

/// A wait on jobs of both machines ends with the first, whichever machine it is on.
#[test]
fn one_wait_covers_jobs_of_two_machines_and_can_be_parked() {
    let two = Two::new();
    let here = two.outlast.start(JobSpec::shell("sleep 1000")).unwrap();
    let there = two.shell("read x; exit 3");
    let waits = [(&here, Wait::for_exit()), (&there, Wait::for_exit())];
    let (tell, told) = std::sync::mpsc::channel();
    let pending = two.outlast.begin_wait(&waits, Some(TEST_TIMEOUT)).unwrap();
    let _waiting = two.outlast.park(pending, move |ended| tell.send(ended).unwrap()).unwrap();
    there.type_line("go").unwrap();
    let (which, waited) = told.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!((which, waited.reason), (1, Reason::Exit));
    let late = wait_any(&[(&here, Wait::for_exit())], Some(Duration::from_millis(10)), None).unwrap();
    assert_eq!(late.1.reason, Reason::Deadline);
    here.kill(Duration::ZERO, "here").unwrap();
}

#[test]
fn a_job_elsewhere_is_followed_and_its_lines_come_in_order() {
    let two = Two::new();
    let job = two.shell("read x; for i in 1 2 3; do echo line $i; done");
    let mut follower = job.follow().unwrap();
    job.type_line("go").unwrap();
    loop {
        match follower.next(Some(std::time::Instant::now() + TEST_TIMEOUT)).unwrap() {
            Some(News::Event(event)) if matches!(event.what, EventKind::Exit { .. }) => break,
            Some(News::Over) | None => panic!("the end was not told"),
            Some(_) => {}
        }
    }
    let mut lines = Vec::new();
    let ended = job
        .stream_lines(0, &Pace::default(), |batch| {
            lines.extend(batch.batch.head.lines().map(str::to_owned));
            Given::Taken
        })
        .unwrap();
    assert!(ended.is_some_and(|info| !info.state.is_live()));
    let lines: Vec<String> = lines.into_iter().filter(|line| line.starts_with("line")).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 3"]);
    let mut whole = Vec::new();
    job.write_text(&ReadText::default(), |text| {
        whole.extend_from_slice(text);
        true
    })
    .unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), text(&job));
    let mut played = 0;
    job.recording().unwrap().events(|_, _| {
        played += 1;
        true
    });
    assert!(played > 0);
}

#[test]
fn a_person_attaches_to_a_job_elsewhere() {
    let two = Two::new();
    let job = two.shell("printf 'who? '; read name; echo hello $name; sleep 1000");
    job.wait(&Wait::of([Condition::AwaitingInput]).from(0), Some(TEST_TIMEOUT)).unwrap();
    let mut viewing = job.attach(&Attach { shared: true, ..Attach::default() }).unwrap().unwrap();
    assert!(String::from_utf8_lossy(&viewing.repaint).contains("who?"));
    assert!(viewing.press(b"world\r"));
    let hello = Wait::of([Condition::Pattern("hello world".into())]).from(0);
    assert_eq!(job.wait(&hello, Some(TEST_TIMEOUT)).unwrap().reason, Reason::Pattern);
    assert!(viewing.look_again(&Attach { shared: true, ..Attach::default() }));
    eventually("it is painted anew", TEST_TIMEOUT, || {
        while viewing.next_now().unwrap().is_some() {}
        if String::from_utf8_lossy(&viewing.repaint).contains("hello world") {
            Ok(())
        } else {
            Err("not yet")
        }
    });
    drop(viewing);
    job.kill(Duration::ZERO, "far").unwrap();
    eventually("nobody is left to attach to", TEST_TIMEOUT, || {
        if job.attach(&Attach::default()).unwrap().is_none() { Ok(()) } else { Err("its keeper is there") }
    });
}

/// What this machine has in its environment, and where this program stands, is not sent to another machine.
#[test]
fn the_environment_and_folder_of_this_machine_stay_here() {
    let two = Two::new();
    let mut spec = JobSpec::shell("echo $WHO in $(pwd)");
    spec.set_env("WHO", "me");
    spec.streams = Streams::Pipes;
    let job = two.start(spec);
    job.wait(&Wait::for_exit(), Some(TEST_TIMEOUT)).unwrap();
    assert!(text(&job).starts_with("me in /"));
    let sent = two.sent.lock().unwrap().clone();
    let here = std::env::current_dir().unwrap();
    assert!(sent.contains("WHO") && !sent.contains(here.to_str().unwrap()), "{sent}");
    for (name, _) in std::env::vars().filter(|(name, _)| name.len() > 2) {
        assert!(!sent.contains(&format!("\"{name}\"")), "{name} was sent: {sent}");
    }
    let given = JobSpec { input: Input::Given, ..JobSpec::shell("cat") };
    let refused = two.outlast.on("gpu1".parse().unwrap()).unwrap().start(given).unwrap_err();
    assert_eq!(refused.kind, Kind::Usage, "{refused}");
}

#[test]
fn what_goes_wrong_elsewhere_says_where_and_hints_at_the_right_job() {
    let two = Two::new();
    let job = two.shell("true");
    job.wait(&Wait::for_exit(), Some(TEST_TIMEOUT)).unwrap();
    let failure = job.type_line("x").unwrap_err();
    assert_eq!(failure.kind, Kind::NotRunning);
    assert!(failure.message.starts_with("gpu1: "), "{failure}");
    assert!(failure.hint.unwrap().to_string().contains("outlast read gpu1/1"));
    let unknown = two.outlast.job("gpu2/1").unwrap_err();
    assert!(unknown.to_string().contains("gpu1"), "{unknown}");
    assert_eq!(two.outlast.job("gpu1/99").unwrap_err().kind, Kind::NoSuchJob);
}
