//! A job's output as it comes: for a foreground `run` and for `logs -f`.

use std::io::{IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use outlast_job::client::Piece;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::client::{Follower, News};
use outlast_job::registry::format::Info;
use outlast_job::request::{JobRequest, ReadBytes, Stream};
use outlast_job::shell::{Step, StepState};
use outlast_job::wire::INPUT_PIECE;
use outlast_job::wire::event::EventKind;
use outlast_job::{Condition, Failure, Job, Send, Wait};
use outlast_stream::{FoldOutput, Pipeline};
use rustix::event::{PollFd, PollFlags, poll};

use crate::answer;
use crate::output::Output;
use crate::terminal::Shown;

/// How much of a log is read at once.
const PIECE: usize = 256 << 10;

/// Why we are no longer in front of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has ended.
    Ended,
    /// It waits for input, and there is nobody here to give it.
    Asked {
        prompt: String,
        /// Up to where its output was shown.
        shown: u64,
    },
    /// It was stopped, by Ctrl-Z as a rule.
    Stopped,
    /// It runs on without us.
    Detached,
}

/// What `logs` shows.
#[derive(Debug)]
pub(crate) struct Show {
    /// The offset to begin at.
    pub(crate) from: u64,
    /// Go on until it has ended.
    pub(crate) follow: bool,
    /// The exact bytes.
    pub(crate) raw: bool,
}

/// Shows a job's output until it ends or we have to leave. `stdin` says whether what is typed on our own terminal
/// is for the job; anything else on standard input it has already.
pub(crate) fn follow(job: &Job, stdin: bool, out: &mut Output) -> Result<Left, Failure> {
    let info = job.info()?;
    let signals = Signals::catch(&[Signal::INT, Signal::QUIT, Signal::TSTP, Signal::HUP, Signal::TERM])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let somebody_types = stdin && std::io::stdin().is_terminal();
    if somebody_types {
        forward_stdin(job);
    }
    let can_take_over =
        info.has_terminal() && std::io::stdout().is_terminal() && crate::terminal::is_in_front();
    if !somebody_types && can_take_over {
        expect_question(job);
    }
    let mut printer = Printer::new(&info, 0, false);
    expect_all(job, 0);
    let mut follower = job.follow()?;
    loop {
        match hear(job, &mut follower, &mut printer)? {
            Some(Left::Asked { .. }) if somebody_types => {}
            Some(left @ Left::Asked { .. }) if can_take_over => {
                printer.hand_over();
                return Ok(left);
            }
            Some(left) => {
                printer.finish();
                if printer.is_binary() {
                    out.talk(
                        "outlast: this is not text, and was written as text; for the exact bytes: outlast run --pipe COMMAND",
                    );
                }
                if let Some(failure) = &printer.trouble {
                    out.talk(&format!("outlast: its output can't be read: {}", failure.message));
                }
                return Ok(left);
            }
            None => {}
        }
        if printer.reader_gone {
            out.talk("outlast: nobody reads the output any more");
            return Ok(Left::Detached);
        }
        sleep(&follower, &signals);
        for signal in signals.take() {
            match signal {
                Signal::HUP | Signal::TERM => return Ok(Left::Detached),
                key => press(job, &info, key)?,
            }
        }
    }
}

/// Shows what a job printed, and goes on if asked to.
pub(crate) fn show(job: &Job, show: &Show, _out: &mut Output) -> Result<(), Failure> {
    let info = job.info()?;
    let mut printer = Printer::new(&info, show.from, show.raw);
    if show.follow {
        expect_all(job, show.from);
        let mut follower = job.follow()?;
        loop {
            let left = hear(job, &mut follower, &mut printer)?;
            if let Some(failure) = printer.trouble {
                return Err(failure);
            }
            if left == Some(Left::Ended) {
                break;
            }
            if printer.reader_gone {
                return Ok(());
            }
            if let Some(fd) = follower.fd() {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None);
            }
        }
    } else {
        job.expect([answer::SHOWN]);
        printer.print(job)?;
    }
    printer.finish();
    // A person who saw what an ended job printed has read it.
    job.info_to_show().map(drop)
}

/// What is read first of a job that is shown from an offset on.
pub(crate) fn first_read(stream: Stream, from: u64) -> JobRequest {
    JobRequest::ReadBytes(ReadBytes { stream, from, max: PIECE, ..ReadBytes::default() })
}

/// A job that has ended by the time it is followed is shown whole without another question. Its record comes first: it says whether what comes
/// after it is final.
fn expect_all(job: &Job, from: u64) {
    job.expect([
        answer::RECORD,
        first_read(Stream::Output, from),
        first_read(Stream::Stderr, 0),
        answer::SHOWN,
    ]);
}

/// Takes in all that has come; says whether that was the end.
fn hear(job: &Job, follower: &mut Follower, printer: &mut Printer) -> Result<Option<Left>, Failure> {
    let mut ended = false;
    let mut asked = None;
    let mut stopped = false;
    while let Some(news) = follower.next_now()? {
        match news {
            News::Grown(_) | News::Changed | News::Attached(_) => {}
            News::Event(event) => match event.what {
                EventKind::Exit { .. } => ended = true,
                EventKind::AwaitingInput { awaiting } => asked = Some(awaiting.prompt),
                EventKind::WentOn => asked = None,
                EventKind::Stopped => stopped = true,
                EventKind::Continued => stopped = false,
                // Nothing else says whether somebody has to stay.
                _ => {}
            },
            News::Over => ended = true,
        }
        if ended {
            break;
        }
    }
    ended = ended || !follower.tells_the_end() && job.has_ended_on_record();
    if ended {
        printer.expect_rest(job);
    }
    // What can't be read now may be readable later, and how it ends is worth knowing all the same.
    printer.trouble = printer.print(job).err();
    if ended {
        return Ok(Some(Left::Ended));
    }
    if stopped {
        return Ok(Some(Left::Stopped));
    }
    let shown = printer.streams.first().map_or(0, |printed| printed.offset);
    Ok(asked.map(|prompt| Left::Asked { prompt, shown }))
}

fn sleep(follower: &Follower, signals: &Signals) {
    let mut fds = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    if let Some(fd) = follower.fd() {
        fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }
    let _ = poll(&mut fds, None);
}

/// A key that the shell's terminal turned into a signal for us goes to the job as the key it was.
fn press(job: &Job, info: &Info, signal: Signal) -> Result<(), Failure> {
    let (key, name) = match signal {
        Signal::QUIT => (0x1c, "QUIT"),
        Signal::TSTP => (0x1a, "TSTP"),
        _ => (0x03, "INT"),
    };
    if info.has_terminal() {
        job.send_bytes(&[key])?;
    } else {
        job.signal(name, &info.session)?;
    }
    Ok(())
}

/// Has the keeper look soon and often whether the job asks on its terminal: the person's terminal shows what is
/// typed until we know.
fn expect_question(job: &Job) {
    let job = job.clone();
    std::thread::spawn(move || {
        let _ = job.wait(&Wait::for_exit().or(Condition::AwaitingInput), None);
    });
}

/// Passes on what is typed, in a thread of its own: a program that does not read holds up nothing else.
fn forward_stdin(job: &Job) {
    let job = job.clone();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin();
        let mut piece = vec![0; INPUT_PIECE];
        loop {
            match stdin.read(&mut piece) {
                Ok(0) => {
                    let _ = job.send(&Send { eof: true, ..Send::default() }, None);
                    return;
                }
                Ok(n) => {
                    if job.send_bytes(&piece[..n]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
}

/// Shows what one step of a shell prints, as it comes.
pub(crate) struct StepFollower {
    follower: Follower,
    info: Info,
    number: u64,
    /// None before its turn has come.
    printer: Option<Printer>,
    /// Where its output ends, once that is known.
    to: Option<u64>,
}

impl StepFollower {
    pub(crate) fn new(job: &Job, number: u64) -> Result<Self, Failure> {
        let (follower, info) = (job.follow()?, job.info()?);
        let mut this = Self { follower, info, number, printer: None, to: None };
        // From now on its beginning is told; it may have begun before.
        for step in job.shell()?.steps {
            this.learn(&step);
        }
        Ok(this)
    }

    fn learn(&mut self, step: &Step) {
        if step.step == self.number && step.state != StepState::Queued {
            self.printer.get_or_insert_with(|| Printer::new(&self.info, step.from, false));
            self.to = step.to;
        }
    }

    /// What to wait on before there is more to show.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.follower.fd()
    }

    /// Shows what is new.
    pub(crate) fn show(&mut self, job: &Job) -> Result<(), Failure> {
        while let Some(news) = self.follower.next_now()? {
            match news {
                News::Event(event) => {
                    if let EventKind::StepStarted { step } | EventKind::Step { step } = event.what {
                        self.learn(&step);
                    }
                }
                News::Grown(_) | News::Changed | News::Attached(_) => {}
                News::Over => break,
            }
        }
        match &mut self.printer {
            Some(printer) => printer.print_until(job, self.to),
            None => Ok(()),
        }
    }

    /// The step is over, or we leave: shows the rest.
    pub(crate) fn finish(mut self, job: &Job, step: Option<&Step>) -> Result<(), Failure> {
        if let Some(step) = step {
            self.learn(step);
        }
        if let Some(printer) = &mut self.printer {
            printer.print_until(job, self.to)?;
            printer.finish();
        }
        Ok(())
    }
}

/// Prints a job's output from where it stopped.
struct Printer {
    streams: Vec<Printed>,
    reader_gone: bool,
    /// Why the output can't be read.
    trouble: Option<Failure>,
}

struct Printed {
    stream: Stream,
    offset: u64,
    form: Form,
}

/// In which form bytes reach their reader.
enum Form {
    /// As they are.
    Raw,
    /// On a person's terminal: without what could do harm there. The fold knows what has to be given back.
    Safe(Box<Shown>),
    /// Into a pipe or file: as a person would have read it.
    Text(Box<Text>),
}

/// Text that is made of what a terminal was sent.
struct Text {
    fold: Pipeline,
    outcome: FoldOutput,
    /// There was something that is not text: a zero byte, or what is no character.
    is_binary: bool,
}

impl Text {
    fn put(&mut self, stream: Stream) -> bool {
        const REPLACED: &[u8] = "\u{fffd}".as_bytes();
        self.is_binary = self.is_binary || self.outcome.text.windows(3).any(|three| three == REPLACED);
        let written = put(stream, &self.outcome.text);
        self.outcome.clear();
        written
    }
}

impl Printer {
    fn new(info: &Info, from: u64, raw: bool) -> Self {
        let form = |to_terminal: bool| {
            if to_terminal {
                Form::Safe(Box::new(Shown::new(outlast_job::client::fold_from(info, from))))
            } else if raw || !info.has_terminal() {
                Form::Raw
            } else {
                let fold = outlast_job::client::fold_from(info, from);
                Form::Text(Box::new(Text { fold, outcome: FoldOutput::default(), is_binary: false }))
            }
        };
        let output =
            Printed { stream: Stream::Output, offset: from, form: form(std::io::stdout().is_terminal()) };
        let mut streams = vec![output];
        if !info.has_terminal() {
            let form = form(std::io::stderr().is_terminal());
            streams.push(Printed { stream: Stream::Stderr, offset: 0, form });
        }
        Self { streams, reader_gone: false, trouble: None }
    }

    fn print(&mut self, job: &Job) -> Result<(), Failure> {
        self.print_until(job, None)
    }

    fn print_until(&mut self, job: &Job, to: Option<u64>) -> Result<(), Failure> {
        let mut gone = false;
        for printed in &mut self.streams {
            let (stream, form) = (printed.stream, &mut printed.form);
            let read = ReadBytes { stream, from: printed.offset, to, max: PIECE, ..ReadBytes::default() };
            printed.offset = job.read_pieces(read, |piece| {
                let mark;
                let bytes = match piece {
                    Piece::Bytes(bytes) => bytes,
                    Piece::Lost { from, to } => {
                        mark = format!("\r\n[{} bytes are gone, from {from} to {to}]\r\n", to - from);
                        mark.as_bytes()
                    }
                };
                gone |= !write(stream, form, bytes);
                !gone
            })?;
        }
        self.reader_gone |= gone;
        Ok(())
    }

    /// The rest of a job that has ended: nothing is asked after it but how it ended.
    fn expect_rest(&self, job: &Job) {
        let errors = self.streams.get(1).map(|printed| first_read(printed.stream, printed.offset));
        job.expect(errors.into_iter().chain([answer::SHOWN]));
    }

    /// Somebody else shows what comes next.
    fn hand_over(&mut self) {
        for printed in &mut self.streams {
            if let Form::Safe(shown) = &mut printed.form {
                put(printed.stream, &shown.hand_over());
            }
        }
    }

    /// The unfinished rest; and a terminal is left as it was found.
    fn finish(&mut self) {
        for printed in &mut self.streams {
            match &mut printed.form {
                Form::Raw => {}
                Form::Safe(shown) => {
                    put(printed.stream, &shown.way_back());
                }
                Form::Text(text) => {
                    text.fold.finish(&mut text.outcome);
                    text.put(printed.stream);
                }
            }
        }
    }

    /// Whether somebody got as text what is none.
    fn is_binary(&self) -> bool {
        self.streams.iter().any(|printed| matches!(&printed.form, Form::Text(text) if text.is_binary))
    }
}

fn write(stream: Stream, form: &mut Form, bytes: &[u8]) -> bool {
    match form {
        Form::Raw => put(stream, bytes),
        Form::Safe(shown) => {
            let safe = shown.pass(bytes);
            put(stream, &safe)
        }
        Form::Text(text) => {
            text.is_binary = text.is_binary || bytes.contains(&0);
            text.fold.feed(bytes, &mut text.outcome);
            text.put(stream)
        }
    }
}

/// Whether somebody still reads it.
fn put(stream: Stream, bytes: &[u8]) -> bool {
    match stream {
        Stream::Output => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush()).is_ok()
        }
        Stream::Stderr => std::io::stderr().lock().write_all(bytes).is_ok(),
    }
}
