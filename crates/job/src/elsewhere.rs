//! Jobs on another machine: the same requests and answers, carried by a [`Link`].
//!
//! A link is all that a relay has to implement. Nothing of this machine goes over it but what a request holds: no
//! environment, no folder, no descriptor. What comes back names its jobs with their host.

mod ahead;

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use outlast_protocol::HostName;
use outlast_protocol::request::{
    Answer, BytePart, Fact, JobRequest, JobWait, News, ReadBytes, Request, Subscription, WaitAny,
};
use outlast_pty::system::Bell;
use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::{millis, time_until};
use crate::failure::{Failure, Kind};
use crate::local::read::Piece;
use crate::local::waiter::Waiting;
use crate::spec::Handle;
use crate::wire::{Attach, Send as Input, Wait, Waited, base64};
pub(crate) use ahead::Ahead;
pub use ahead::Also;

/// How many bytes of a log are asked for at once.
pub(crate) const BYTES_PER_ANSWER: usize = 256 << 10;
/// More news than this, and a slow reader is told that there is no more: it looks again then.
const MAX_UNREAD_NEWS: usize = 4096;

/// How a request is told its answer. It is called once, in any thread, and does not block.
pub type Answered = Box<dyn FnOnce(Result<Answer, Failure>) + Send>;
/// How a subscriber is told; false when it wants no more. It does not block.
pub type Tell = Box<dyn FnMut(News) -> bool + Send>;

/// Carries requests to another machine and answers back.
///
/// Requests are carried out in the order in which they were begun, as far as they are about one job. For an agent
/// (`masked`), the host hides secrets in all that it answers.
pub trait Link: fmt::Debug + Send + Sync {
    /// Begins a request. To drop what is returned gives it up.
    ///
    /// # Errors
    /// When the machine cannot be reached.
    fn begin(&self, masked: bool, request: Request, answered: Answered) -> Result<Waiting, Failure>;

    /// Begins to tell of something, until what is returned is dropped.
    ///
    /// # Errors
    /// When the machine cannot be reached, or refuses.
    fn subscribe(&self, masked: bool, to: Subscription, tell: Tell) -> Result<Waiting, Failure>;

    /// As [`begin`](Self::begin), with more questions about the same job. They may stay without an answer.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn begin_with(
        &self,
        masked: bool,
        request: Request,
        also: Also,
        answered: Answered,
    ) -> Result<Waiting, Failure> {
        drop(also);
        self.begin(masked, request, answered)
    }

    /// As [`subscribe`](Self::subscribe), with questions about the same job. They may stay without an answer.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    fn subscribe_with(
        &self,
        masked: bool,
        to: Subscription,
        also: Also,
        tell: Tell,
    ) -> Result<Waiting, Failure> {
        drop(also);
        self.subscribe(masked, to, tell)
    }
}

/// Another machine.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) name: HostName,
    link: Box<dyn Link>,
}

impl Elsewhere {
    pub(crate) fn new(name: HostName, link: Box<dyn Link>) -> Self {
        Self { name, link }
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, masked: bool, request: Request) -> Result<Answer, Failure> {
        self.ask_with(masked, request, Also::default())
    }

    /// As [`ask`](Self::ask), with what will be asked next.
    pub(crate) fn ask_with(&self, masked: bool, request: Request, also: Also) -> Result<Answer, Failure> {
        let (tell, told) = mpsc::sync_channel(1);
        let answered = Box::new(move |answer| {
            let _ = tell.send(answer);
        });
        let _waiting = self.begin_with(masked, request, also, answered)?;
        told.recv().unwrap_or_else(|_| {
            Err(Failure::new(Kind::Keeper, format!("lost the connection to {}", self.name)))
        })
    }

    pub(crate) fn begin(
        &self,
        masked: bool,
        request: Request,
        answered: Answered,
    ) -> Result<Waiting, Failure> {
        self.begin_with(masked, request, Also::default(), answered)
    }

    fn begin_with(
        &self,
        masked: bool,
        request: Request,
        also: Also,
        answered: Answered,
    ) -> Result<Waiting, Failure> {
        let host = self.name;
        let seen = move |answer: Result<Answer, Failure>| {
            let answer = answer.map(|answer| answer.seen_from_here(host));
            answered(answer.map_err(|failure| failure.seen_from_here(host)));
        };
        let begun = self.link.begin_with(masked, request.as_its_host_knows_it(), also, Box::new(seen));
        begun.map_err(|failure| failure.seen_from_here(host))
    }

    pub(crate) fn subscribe(&self, masked: bool, to: Subscription, tell: Tell) -> Result<Waiting, Failure> {
        self.subscribe_with(masked, to, Also::default(), tell)
    }

    fn subscribe_with(
        &self,
        masked: bool,
        to: Subscription,
        also: Also,
        tell: Tell,
    ) -> Result<Waiting, Failure> {
        let begun = self.link.subscribe_with(masked, to.as_its_host_knows_it(), also, tell);
        begun.map_err(|failure| failure.seen_from_here(self.name))
    }
}

/// A job on another machine, as one reader may see it.
#[derive(Clone, Debug)]
pub(crate) struct ElsewhereJob {
    host: Arc<Elsewhere>,
    handle: Handle,
    masked: bool,
    ahead: Ahead,
}

impl ElsewhereJob {
    pub(crate) fn new(host: Arc<Elsewhere>, handle: Handle, masked: bool, ahead: Ahead) -> Self {
        Self { host, handle, masked, ahead }
    }

    /// What will be asked after the next request.
    pub(crate) fn expect(&self, asks: Vec<JobRequest>) {
        self.ahead.expect(asks);
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn masked(self) -> Self {
        // What came along was not masked.
        Self { masked: true, ahead: Ahead::default(), ..self }
    }

    pub(crate) fn is_masked(&self) -> bool {
        self.masked
    }

    pub(crate) fn ask(&self, ask: JobRequest) -> Result<Answer, Failure> {
        if let Some(answer) = self.ahead.take(&ask) {
            return answer;
        }
        let also = self.ahead.go_along(self.host.name, Some(&ask));
        self.host.ask_with(self.masked, Request::Job { job: self.handle, ask }, also)
    }

    /// Hands out the bytes of a range in order, each piece with its offset, until `each` says stop.
    pub(crate) fn pieces(
        &self,
        read: ReadBytes,
        mut each: impl FnMut(u64, Piece<'_>) -> bool,
    ) -> Result<(), Failure> {
        let mut read = ReadBytes { max: BYTES_PER_ANSWER, ..read };
        loop {
            let bytes = match self.ask(JobRequest::ReadBytes(read))? {
                Answer::Bytes(bytes) => bytes,
                other => return Err(unexpected(&other)),
            };
            let mut at = bytes.from;
            for part in &bytes.parts {
                let (piece, next) = match part {
                    BytePart::Bytes(bytes) => (Piece::Bytes(bytes), at + bytes.len() as u64),
                    BytePart::Lost { from, to } => (Piece::Lost { from: *from, to: *to }, *to),
                };
                if !each(at, piece) {
                    return Ok(());
                }
                at = next;
            }
            if bytes.next >= bytes.end || bytes.parts.is_empty() {
                return Ok(());
            }
            // From here on the range is known: what is printed meanwhile is not part of it.
            (read.from, read.to, read.lines) = (bytes.next, Some(bytes.end), None);
        }
    }

    /// When it printed what.
    pub(crate) fn facts(&self) -> Result<Vec<Fact>, Failure> {
        let mut facts = Vec::new();
        let mut from = 0;
        loop {
            let timing = match self.ask(JobRequest::Timing { from })? {
                Answer::Timing(timing) => timing,
                other => return Err(unexpected(&other)),
            };
            facts.extend(timing.facts);
            match timing.next {
                Some(next) => from = next,
                None => return Ok(facts),
            }
        }
    }

    pub(crate) fn follow(&self) -> Result<ElsewhereFollower, Failure> {
        let inbox = Inbox::new()?;
        let news = Arc::clone(&inbox);
        let tell = Box::new(move |one| news.push_news(one));
        let to = Subscription::Job { job: self.handle };
        let also = self.ahead.go_along(self.host.name, None);
        let subscribed = self.host.subscribe_with(self.masked, to, also, tell)?;
        Ok(ElsewhereFollower { job: self.clone(), inbox, is_over: false, _subscribed: subscribed })
    }

    /// Attaches a person's terminal; none when the job has no keeper any more.
    pub(crate) fn attach(&self, attach: &Attach) -> Result<Option<ElsewhereView>, Failure> {
        let inbox = Inbox::new()?;
        match self.subscribe_view(attach, &inbox) {
            Ok(subscribed) => Ok(Some(ElsewhereView { job: self.clone(), inbox, subscribed })),
            Err(failure) if failure.kind == Kind::NotRunning => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn subscribe_view(&self, attach: &Attach, inbox: &Arc<Inbox<ViewNews>>) -> Result<Waiting, Failure> {
        let news = Arc::clone(inbox);
        let tell = Box::new(move |one| news.push(ViewNews::News(one)));
        let to = Subscription::Attach { job: self.handle, attach: attach.clone() };
        self.host.subscribe(self.masked, to, tell)
    }
}

/// What comes from another machine, in order, with a descriptor to poll.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    queue: Mutex<VecDeque<T>>,
    bell: Bell,
}

impl<T> Inbox<T> {
    fn new() -> Result<Arc<Self>, Failure> {
        let bell = Bell::new().map_err(|error| Failure::system("cannot make a bell", error))?;
        Ok(Arc::new(Self { queue: Mutex::default(), bell }))
    }

    /// Adds something; false when there is no room, for nobody reads.
    fn push(&self, one: T) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = queue.len() < MAX_UNREAD_NEWS;
        if has_room {
            queue.push_back(one);
        }
        drop(queue);
        self.bell.ring();
        has_room
    }

    fn pop(&self) -> Option<T> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let one = queue.pop_front();
        if queue.is_empty() {
            self.bell.hear();
        }
        one
    }

    fn wait(&self, deadline: Option<Instant>) {
        let mut fds = [PollFd::new(&self.bell, PollFlags::IN)];
        let _ = poll(&mut fds, deadline.map(time_until).as_ref());
    }
}

impl Inbox<News> {
    /// As [`push`](Self::push); how far a log has grown replaces what was said of it before.
    fn push_news(&self, news: News) -> bool {
        if let News::Grown(grown) = &news {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(News::Grown(before)) = queue.back_mut() {
                *before = *grown;
                return true;
            }
        }
        self.push(news)
    }
}

impl<T> AsFd for Inbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Follows a job on another machine.
#[derive(Debug)]
pub(crate) struct ElsewhereFollower {
    job: ElsewhereJob,
    inbox: Arc<Inbox<News>>,
    is_over: bool,
    _subscribed: Waiting,
}

impl ElsewhereFollower {
    pub(crate) fn knock(&mut self) -> Result<(), Failure> {
        *self = self.job.follow()?;
        Ok(())
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over).then(|| self.inbox.as_fd())
    }

    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Option<News> {
        loop {
            if let Some(news) = self.next_now() {
                return Some(news);
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return None;
            }
            self.inbox.wait(deadline);
        }
    }

    pub(crate) fn next_now(&mut self) -> Option<News> {
        if self.is_over {
            return Some(News::Over);
        }
        let news = self.inbox.pop();
        if let Some(news) = &news {
            self.job.ahead.heard(news);
        }
        self.is_over = matches!(news, Some(News::Over));
        news
    }
}

/// What a person in front of a job is told.
#[derive(Debug)]
pub(crate) enum ViewNews {
    News(News),
    /// What was typed did not arrive.
    Refused(Failure),
}

/// A person in front of a job on another machine.
#[derive(Debug)]
pub(crate) struct ElsewhereView {
    job: ElsewhereJob,
    inbox: Arc<Inbox<ViewNews>>,
    subscribed: Waiting,
}

impl ElsewhereView {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }

    pub(crate) fn next_now(&self) -> Option<ViewNews> {
        self.inbox.pop()
    }

    /// Waits for the next.
    pub(crate) fn next(&self, timeout: Duration) -> Option<ViewNews> {
        let deadline = Instant::now() + timeout;
        loop {
            let news = self.inbox.pop();
            if news.is_some() || Instant::now() >= deadline {
                return news;
            }
            self.inbox.wait(Some(deadline));
        }
    }

    pub(crate) fn press(&self, bytes: &[u8]) -> bool {
        let session = Some(crate::session::current());
        let send = Input { bytes: base64::encode(bytes), session, ..Input::default() };
        let request = Request::Job { job: self.job.handle, ask: JobRequest::Send { send, timeout_ms: None } };
        let inbox = Arc::clone(&self.inbox);
        let answered = Box::new(move |answer: Result<Answer, Failure>| {
            if let Err(failure) = answer {
                inbox.push(ViewNews::Refused(failure));
            }
        });
        match self.job.host.begin(self.job.masked, request, answered) {
            Ok(typed) => {
                // Nobody waits for it, and it is not given up either.
                typed.detach();
                true
            }
            Err(_) => false,
        }
    }

    /// Asks for the screen anew, perhaps in another size. The old view goes when the new one is there.
    pub(crate) fn look_again(&mut self, attach: &Attach) -> bool {
        match self.job.subscribe_view(attach, &self.inbox) {
            Ok(subscribed) => {
                self.subscribed = subscribed;
                true
            }
            Err(_) => false,
        }
    }
}

/// A wait on a job of another machine. Its host decides it.
#[derive(Debug)]
pub(crate) struct ElsewhereWait {
    job: ElsewhereJob,
    wait: Wait,
    inbox: Arc<Inbox<Result<Answer, Failure>>>,
    begun: Option<Waiting>,
}

impl ElsewhereWait {
    pub(crate) fn new(job: ElsewhereJob, wait: Wait) -> Result<Self, Failure> {
        Ok(Self { job, wait, inbox: Inbox::new()?, begun: None })
    }

    /// Where the wait began, as far as that is known here.
    pub(crate) fn offset(&self) -> u64 {
        self.wait.from.unwrap_or(0)
    }

    /// Begins it if need be; how it ended, if it has.
    pub(crate) fn advance(&mut self, deadline: Option<Instant>) -> Result<Option<Waited>, Failure> {
        if self.begun.is_none() {
            // Rounded up: an answer before its time would be wrong.
            let timeout_ms = deadline.map(|at| millis(at.saturating_duration_since(Instant::now())) + 1);
            let waits = vec![JobWait { job: self.job.handle, wait: self.wait.clone() }];
            let inbox = Arc::clone(&self.inbox);
            let answered = Box::new(move |answer| {
                inbox.push(answer);
            });
            let request = Request::Wait(WaitAny { waits, timeout_ms });
            let also = self.job.ahead.go_along(self.job.host.name, None);
            self.begun = Some(self.job.host.begin_with(self.job.masked, request, also, answered)?);
        }
        match self.inbox.pop().transpose()? {
            Some(Answer::Waited { waited, .. }) => Ok(Some(waited)),
            Some(other) => Err(unexpected(&other)),
            None => Ok(None),
        }
    }
}

impl AsFd for ElsewhereWait {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }
}

/// The host answered something else than was asked.
pub(crate) fn unexpected(answer: &Answer) -> Failure {
    Failure::new(Kind::Keeper, format!("unexpected answer from the host: {answer:?}"))
}
