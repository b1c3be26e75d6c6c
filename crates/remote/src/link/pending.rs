//! What was asked over a link and is not answered yet, and how it is asked again after a cut.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use outlast_job::client::{Also, Answered, News, Tell};
use outlast_job::request::{Answer, JobRequest, Request, Subscription};
use outlast_job::wire::event::Event;
use outlast_job::wire::{Reason, Waited};
use outlast_job::{Failure, Handle, Kind};

use crate::frame::MessageKind;
use crate::message::{Ask, Subscribe};

/// Beyond the time of a wait, how long its answer may take.
const WAIT_SLACK: Duration = Duration::from_secs(2);
/// How much of a job's events is looked through for those that were missed.
const EVENT_BYTES: usize = 1 << 20;

/// Something that was asked.
pub(super) struct Pending {
    masked: bool,
    what: What,
}

enum What {
    Request {
        request: Box<Request>,
        order: Option<String>,
        /// A relay was asked.
        was_sent: bool,
        answered: Answered,
        also: Also,
        /// What came along, until the answer itself is here.
        came_along: Vec<Result<Answer, Failure>>,
        begun: Instant,
        /// For a wait with a limit: when it is over.
        over_at: Option<Instant>,
        patience: Patience,
    },
    Subscription {
        to: Subscription,
        tell: Tell,
        also: Also,
        /// Who waits to know whether there is something to be told of.
        opened: Option<SyncSender<Result<(), Failure>>>,
        /// The last event that was told.
        last: Option<u64>,
        /// Events that were missed are on the way; what comes live waits for them.
        held: Option<Vec<News>>,
    },
}

/// How long the answer may wait for a connection.
#[derive(Clone, Copy)]
enum Patience {
    For(Duration),
    /// As long as the caller.
    Any,
}

impl Pending {
    pub(super) fn request(
        masked: bool,
        request: Request,
        also: Also,
        answered: Answered,
        patience: Duration,
    ) -> Self {
        let begun = Instant::now();
        let (over_at, patience) = match request.as_wait() {
            Some(wait) => (wait.timeout_ms.map(|ms| begun + Duration::from_millis(ms)), Patience::Any),
            None => (None, Patience::For(patience)),
        };
        let order = request.is_order().then(order_name);
        Self {
            masked,
            what: What::Request {
                request: Box::new(request),
                order,
                was_sent: false,
                answered,
                also,
                came_along: Vec::new(),
                begun,
                over_at,
                patience,
            },
        }
    }

    pub(super) fn subscription(
        masked: bool,
        to: Subscription,
        also: Also,
        tell: Tell,
        opened: SyncSender<Result<(), Failure>>,
    ) -> Self {
        let opened = Some(opened);
        Self { masked, what: What::Subscription { to, tell, also, opened, last: None, held: None } }
    }

    /// Whether a relay may be asked before it has said that it is there. Not for what must not be done twice: what was asked of
    /// nobody certainly was not done.
    pub(super) fn may_go_first(&self) -> bool {
        match &self.what {
            What::Request { order, .. } => order.is_none(),
            What::Subscription { .. } => true,
        }
    }

    /// The message that asks for it now.
    pub(super) fn message(&mut self) -> (MessageKind, Vec<u8>) {
        let json = |value: serde_json::Result<Vec<u8>>| value.unwrap_or_default();
        match &mut self.what {
            What::Request { request, order, over_at, was_sent, also, .. } => {
                *was_sent = true;
                let mut ask = (**request).clone();
                if let (Request::Wait(wait), Some(at)) = (&mut ask, over_at) {
                    let left = at.saturating_duration_since(Instant::now()).as_millis();
                    wait.timeout_ms = Some(u64::try_from(left).unwrap_or(u64::MAX).saturating_add(1));
                }
                let also = also.asks().to_vec();
                let ask = Ask { ask, masked: self.masked, order: order.clone(), host: None, also };
                (MessageKind::Request, json(serde_json::to_vec(&ask)))
            }
            What::Subscription { to, also, .. } => {
                let also = also.asks().to_vec();
                let subscribe = Subscribe { to: to.clone(), masked: self.masked, host: None, also };
                (MessageKind::Subscribe, json(serde_json::to_vec(&subscribe)))
            }
        }
    }

    /// For a subscription that is made anew: the question for what was missed. What comes live waits for the answer.
    pub(super) fn missed(&mut self) -> Option<Vec<u8>> {
        let What::Subscription { to: Subscription::Job { job }, last: Some(_), held, .. } = &mut self.what
        else {
            return None;
        };
        held.get_or_insert_default();
        let ask = Request::Job { job: *job, ask: JobRequest::EventLines { max: EVENT_BYTES } };
        let ask = Ask { ask, masked: self.masked, order: None, host: None, also: Vec::new() };
        serde_json::to_vec(&ask).ok()
    }

    fn fail(self, failure: &Failure) {
        match self.what {
            What::Request { answered, order: Some(_), was_sent: true, .. } => {
                let said = format!("{}; it is not known whether it was carried out", failure.message);
                answered(Err(Failure {
                    kind: Kind::OutcomeUnknown,
                    message: said,
                    hint: failure.hint.clone(),
                }));
            }
            What::Request { answered, .. } => answered(Err(failure.clone())),
            What::Subscription { tell, opened, .. } => refuse(tell, opened, failure.clone()),
        }
    }

    /// The caller no longer wants it. A wait is over as if its time were up.
    pub(super) fn cancelled(self) {
        if let What::Request { request, answered, begun, .. } = self.what
            && let Request::Wait(wait) = *request
        {
            answered(Ok(late(wait.waits.first().and_then(|one| one.wait.from), begun)));
        }
    }

    /// When it is given up, if there is no connection since then.
    fn late_at(&self, gone_since: Option<Instant>) -> Option<Instant> {
        match &self.what {
            What::Request { over_at: Some(at), .. } => Some(*at + WAIT_SLACK),
            What::Request { patience: Patience::For(time), begun, .. } => {
                gone_since.map(|since| since.max(*begun) + *time)
            }
            What::Request { patience: Patience::Any, .. } | What::Subscription { .. } => None,
        }
    }
}

fn late(from: Option<u64>, begun: Instant) -> Answer {
    let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let waited = Waited { elapsed_ms, ..Waited::because(Reason::Deadline, from.unwrap_or(0)) };
    Answer::Waited { which: 0, waited }
}

/// A name for an order that nobody has used before.
fn order_name() -> String {
    let mut random = [0_u8; 16];
    if outlast_job::system::random(&mut random).is_err() {
        // Unique on this machine, which is what it is for.
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        random = now.to_le_bytes();
        random[12..].copy_from_slice(&std::process::id().to_le_bytes());
    }
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that was asked, by number.
#[derive(Default)]
pub(super) struct Asked {
    all: BTreeMap<u32, Pending>,
}

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn insert(&mut self, id: u32, pending: Pending) {
        self.all.insert(id, pending);
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Pending> {
        self.all.remove(&id)
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = (u32, &mut Pending)> {
        self.all.iter_mut().map(|(id, pending)| (*id, pending))
    }

    pub(super) fn fail_all(&mut self, failure: &Failure) {
        for pending in std::mem::take(&mut self.all).into_values() {
            pending.fail(failure);
        }
    }

    pub(super) fn first_late(&self, gone_since: Option<Instant>) -> Option<Instant> {
        self.all.values().filter_map(|pending| pending.late_at(gone_since)).min()
    }

    pub(super) fn give_up_late(
        &mut self,
        now: Instant,
        gone_since: Option<Instant>,
        failure: impl Fn() -> Failure,
    ) {
        let is_late = |pending: &Pending| pending.late_at(gone_since).is_some_and(|at| at <= now);
        let late: Vec<u32> = self.all.iter().filter(|(_, one)| is_late(one)).map(|(id, _)| *id).collect();
        for id in late {
            let Some(pending) = self.all.remove(&id) else { continue };
            match &pending.what {
                What::Request { over_at: Some(_), .. } => pending.cancelled(),
                What::Request { .. } | What::Subscription { .. } => pending.fail(&failure()),
            }
        }
    }

    pub(super) fn answered(&mut self, id: u32, answer: Result<Answer, Failure>) {
        match self.all.remove(&id).map(|pending| pending.what) {
            Some(What::Request { answered, also, came_along, .. }) => {
                also.tell(came_along);
                answered(answer);
            }
            Some(What::Subscription { tell, opened, .. }) => {
                let failure = answer.err().unwrap_or_else(|| Failure::new(Kind::Keeper, "unexpected answer"));
                refuse(tell, opened, failure);
            }
            None => {}
        }
    }

    /// What will be asked next was answered on the way.
    pub(super) fn also(&mut self, id: u32, answers: Vec<Result<Answer, Failure>>) {
        match self.all.get_mut(&id).map(|pending| &mut pending.what) {
            Some(What::Request { came_along, .. }) => *came_along = answers,
            Some(What::Subscription { also, .. }) => std::mem::take(also).tell(answers),
            None => {}
        }
    }

    /// Where a wait began, or which event was the last before a subscription.
    pub(super) fn began(&mut self, id: u32, from: &[u64]) {
        match self.all.get_mut(&id).map(|pending| &mut pending.what) {
            Some(What::Request { request, .. }) => {
                if let Request::Wait(wait) = &mut **request {
                    for (one, from) in wait.waits.iter_mut().zip(from) {
                        one.wait.from.get_or_insert(*from);
                    }
                }
            }
            Some(What::Subscription { last, opened, .. }) => {
                is_open(opened);
                if let Some(seq) = from.first() {
                    last.get_or_insert(*seq);
                }
            }
            None => {}
        }
    }

    /// News; false when nobody wants more.
    pub(super) fn tell(&mut self, id: u32, news: News) -> bool {
        let Some(pending) = self.all.get_mut(&id) else { return false };
        let What::Subscription { tell, opened, last, held, .. } = &mut pending.what else { return false };
        is_open(opened);
        if let Some(held) = held {
            held.push(news);
            return true;
        }
        let is_over = matches!(news, News::Over);
        let wanted = told(tell, last, news) && !is_over;
        if !wanted {
            self.all.remove(&id);
        }
        wanted
    }

    /// What was missed has come, or is lost.
    pub(super) fn caught_up(&mut self, id: u32, lines: &str) {
        let Some(pending) = self.all.get_mut(&id) else { return };
        let What::Subscription { tell, last, held, .. } = &mut pending.what else { return };
        let missed = lines.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let mut wanted = true;
        let live = held.take().unwrap_or_default();
        for news in missed.map(News::Event).chain(live) {
            let is_over = matches!(news, News::Over);
            wanted = wanted && told(tell, last, news) && !is_over;
        }
        if !wanted {
            self.all.remove(&id);
        }
    }

    /// The connection is gone, or subscriptions without numbers were made anew: subscribers look again.
    pub(super) fn look_again(&mut self) {
        let has_no_numbers = |pending: &Pending| match &pending.what {
            What::Subscription { to, .. } => match to {
                Subscription::JobList | Subscription::Session { .. } => true,
                Subscription::Job { .. } | Subscription::Attach { .. } => false,
            },
            What::Request { .. } => false,
        };
        let all: Vec<u32> =
            self.all.iter().filter(|(_, one)| has_no_numbers(one)).map(|(id, _)| *id).collect();
        for id in all {
            self.tell(id, News::Changed);
        }
    }
}

fn is_open(opened: &mut Option<SyncSender<Result<(), Failure>>>) {
    if let Some(opened) = opened.take() {
        let _ = opened.try_send(Ok(()));
    }
}

/// There is nothing to be told of, or no more.
fn refuse(mut tell: Tell, opened: Option<SyncSender<Result<(), Failure>>>, failure: Failure) {
    match opened {
        Some(opened) => drop(opened.try_send(Err(failure))),
        None => drop(tell(News::Over)),
    }
}

/// Tells it, unless it is an event that was told before.
fn told(tell: &mut Tell, last: &mut Option<u64>, news: News) -> bool {
    if let News::Event(event) = &news {
        if last.is_some_and(|last| event.seq <= last) {
            return true;
        }
        *last = Some(event.seq);
    }
    tell(news)
}

/// For the relay: which event of a job was the last so far.
pub(crate) fn last_event(outlast: &outlast_job::Outlast, job: Handle) -> u64 {
    let ask = Request::Job { job, ask: JobRequest::EventLines { max: 4096 } };
    let Ok(Answer::EventLines(lines)) = outlast.answer(ask) else { return 0 };
    lines.lines().rev().find_map(|line| serde_json::from_str::<Event>(line).ok()).map_or(0, |event| event.seq)
}
