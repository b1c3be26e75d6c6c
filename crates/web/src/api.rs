//! What the page may ask for, one closed set: each call says what it needs, and is judged by the gate like that of any door.

use std::sync::Arc;

use outlast_job::client::{CompareLines, compare_lines};
use outlast_job::registry::Home;
use outlast_job::request::{Grep, Lines, Moment, ReadText};
use outlast_job::wire::{Hold, Send};
use outlast_job::{Failure, Job, Kind, Outlast};
use outlast_policy::{Answer, Door, Gate, Judged, Order, OrderKind, Pass, TypedInput};
use outlast_protocol::order::KILL_GRACE_AT_TERMINAL;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cards::Rank;
use crate::options::Pictures;
use crate::rights::{Needs, Visitor};
use crate::store::hash;
use crate::{inbox, timeline};

/// The session that everything is done for that comes through this door.
pub(crate) const SESSION: &str = "web";
/// How a person is called who answers here.
const BY: &str = "a person in the web view";
/// The most text of one answer.
const MAX_TEXT: usize = 256 << 10;
/// The longest recording that is handed out as one file.
const MAX_CAST: usize = 64 << 20;

/// A call of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum Call {
    /// Who am I, and what can this server do?
    Hello,
    /// One job.
    Job { job: String },
    /// A screen: as it is, or as it was.
    Screen { job: String, at_ms: Option<u64> },
    /// A range of the transcript.
    Text { job: String, from: u64, to: Option<u64>, last: Option<usize> },
    /// Lines of the transcript that match.
    Grep { job: String, pattern: String },
    /// What happened when.
    Timeline { job: String },
    /// What one run printed that another did not.
    Compare { first: String, second: String, ignore_numbers: bool },
    /// What waits for a person, and what happened lately.
    Inbox,
    /// Type something.
    Send {
        job: String,
        #[serde(default)]
        text: String,
        #[serde(default)]
        enter: bool,
        #[serde(default)]
        keys: Vec<String>,
        paste: Option<bool>,
        agreed: Option<String>,
    },
    /// Type what nobody may see.
    Secret { job: String, value: String },
    /// Answer what a program wants to execute.
    Answer { job: String, question: u64, allow: bool },
    /// Take a job over, or give it back.
    Hold { job: String, take: bool },
    /// End a job.
    Kill { job: String, agreed: Option<String> },
    /// A recording or a picture to keep.
    Export { job: String, format: Format, at_ms: Option<u64> },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Cast,
    Svg,
}

impl Call {
    pub(crate) fn needs(&self) -> Needs<'_> {
        match self {
            Self::Hello => Needs::Nothing,
            Self::Job { job } | Self::Screen { job, at_ms: None } => Needs::Screen(job),
            Self::Screen { .. }
            | Self::Text { .. }
            | Self::Grep { .. }
            | Self::Timeline { .. }
            | Self::Compare { .. }
            | Self::Inbox
            | Self::Export { .. } => Needs::Look,
            Self::Send { .. }
            | Self::Secret { .. }
            | Self::Answer { .. }
            | Self::Hold { .. }
            | Self::Kill { .. } => Needs::Act,
        }
    }
}

/// What calls are answered with.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) outlast: Outlast,
    pub(crate) pictures: Arc<dyn Pictures>,
}

/// A failure as the page reads it.
#[derive(Debug, Serialize)]
pub(crate) struct Said {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl From<&Failure> for Said {
    fn from(failure: &Failure) -> Self {
        Self {
            kind: failure.kind.name(),
            message: failure.message.clone(),
            hint: failure.hint.as_ref().map(ToString::to_string),
        }
    }
}

impl Desk {
    /// The job of a name, as this visitor may see it.
    ///
    /// # Errors
    /// There is none, or it is not theirs to see.
    pub(crate) fn job(&self, visitor: &Visitor, name: &str) -> Result<Job, Failure> {
        let job = self.outlast.job(name)?;
        Ok(if visitor.is_owner() { job } else { job.masked() })
    }

    /// Answers a call. It may block.
    ///
    /// # Errors
    /// What the visitor may not do, and what is wrong.
    pub(crate) fn answer(&self, visitor: &Visitor, call: Call) -> Result<Value, Failure> {
        visitor.may(call.needs())?;
        let home = self.outlast.home();
        match call {
            Call::Hello => Ok(hello(visitor)),
            Call::Job { job } => {
                allowed(home, OrderKind::Screen)?;
                about(&self.job(visitor, &job)?, visitor)
            }
            Call::Screen { job, at_ms } => {
                allowed(home, OrderKind::Screen)?;
                screen(&self.job(visitor, &job)?, at_ms)
            }
            Call::Text { job, from, to, last } => {
                allowed(home, OrderKind::Read)?;
                let lines = last.map(|lines| Lines::Last(lines.min(10_000)));
                let range = ReadText { from, to, lines, max: MAX_TEXT, ..ReadText::default() };
                to_value(&self.job(visitor, &job)?.read(range)?)
            }
            Call::Grep { job, pattern } => {
                allowed(home, OrderKind::Read)?;
                let range = ReadText { max: MAX_TEXT, ..ReadText::default() };
                to_value(&self.job(visitor, &job)?.grep(Grep { range, pattern })?)
            }
            Call::Timeline { job } => {
                allowed(home, OrderKind::Replay)?;
                timeline::of(&self.job(visitor, &job)?)
            }
            Call::Compare { first, second, ignore_numbers } => {
                allowed(home, OrderKind::Read)?;
                let lines = |job: &str| self.job(visitor, job)?.lines_to_compare();
                let ((first, one), (second, other)) = (lines(&first)?, lines(&second)?);
                let found = compare_lines(&first, &second, CompareLines { context: 3, ignore_numbers });
                let mut value = to_value(&found)?;
                value["left_out"] = json!(one || other);
                Ok(value)
            }
            Call::Inbox => {
                allowed(home, OrderKind::List)?;
                Ok(inbox::of(&self.outlast))
            }
            Call::Export { job, format, at_ms } => {
                allowed(home, OrderKind::Replay)?;
                self.export(&self.job(visitor, &job)?, format, at_ms)
            }
            Call::Send { .. }
            | Call::Secret { .. }
            | Call::Answer { .. }
            | Call::Hold { .. }
            | Call::Kill { .. } => self.act(visitor, call),
        }
    }

    /// Calls that change something.
    fn act(&self, visitor: &Visitor, call: Call) -> Result<Value, Failure> {
        let home = self.outlast.home();
        let Visitor::Owner { holder, .. } = visitor else {
            return Err(Failure::new(Kind::Denied, "this link only shows the screen of one job"));
        };
        match call {
            Call::Send { job, text, enter, keys, paste, agreed } => {
                let job = self.job(visitor, &job)?;
                let (session, holder) = (Some(SESSION.to_owned()), Some(holder.clone()));
                let send = Send { text, newline: enter, keys, paste, session, holder, ..Send::default() };
                let input = TypedInput::new(send)?;
                let pass = passed(home, OrderKind::Send { job: &job, input: &input }, agreed.as_deref())?;
                to_value(&job.send(&input.passed(&pass), Some(std::time::Duration::from_secs(5)))?)
            }
            Call::Secret { job, value } => {
                let value = outlast_protocol::secret_text::SecretText::new(value.as_bytes());
                let job = self.job(visitor, &job)?;
                allowed(home, OrderKind::Secret)?;
                let ask = outlast_job::request::JobRequest::Secret { value, force: false };
                job.ask(ask)?;
                Ok(json!({ "typed": true }))
            }
            Call::Answer { job, question, allow } => answer(home, &self.job(visitor, &job)?, question, allow),
            Call::Hold { job, take } => {
                let job = self.job(visitor, &job)?;
                allowed(home, OrderKind::Attach { read_only: false })?;
                job.hold(Hold { holder: holder.clone(), by: BY.into(), take })?;
                Ok(json!({ "held": take }))
            }
            Call::Kill { job, agreed } => {
                let job = self.job(visitor, &job)?;
                let _pass = passed(home, OrderKind::Kill { job: &job, force: false }, agreed.as_deref())?;
                to_value(&job.kill(KILL_GRACE_AT_TERMINAL, SESSION)?)
            }
            Call::Hello
            | Call::Job { .. }
            | Call::Screen { .. }
            | Call::Text { .. }
            | Call::Grep { .. }
            | Call::Timeline { .. }
            | Call::Compare { .. }
            | Call::Inbox
            | Call::Export { .. } => Ok(Value::Null),
        }
    }

    fn export(&self, job: &Job, format: Format, at_ms: Option<u64>) -> Result<Value, Failure> {
        let name = format!("job-{}", job.handle().to_string().replace('/', "-"));
        match format {
            Format::Svg => {
                let shot = job.screen_at(Moment::Time(at_ms.unwrap_or(u64::MAX)), true)?;
                let text = self.pictures.svg(&shot);
                Ok(json!({ "name": format!("{name}.svg"), "type": "image/svg+xml", "text": text }))
            }
            Format::Cast => {
                let (mut text, mut is_whole) = (String::new(), true);
                job.recording()?.write_cast(
                    outlast_job::client::CastVersion::Three,
                    &job.step_marks()?,
                    |line| {
                        is_whole = text.len() + line.len() < MAX_CAST;
                        if is_whole {
                            text.push_str(line);
                            text.push('\n');
                        }
                        is_whole
                    },
                );
                if !is_whole {
                    return Err(Failure::usage("the recording is too long for a browser").hint(format!(
                        "write it to a file: outlast replay {} --export cast > job.cast",
                        job.handle()
                    )));
                }
                Ok(json!({ "name": format!("{name}.cast"), "type": "application/x-asciicast", "text": text }))
            }
        }
    }
}

fn hello(visitor: &Visitor) -> Value {
    let (kind, read_only, job, until) = match visitor {
        Visitor::Owner { read_only, .. } => ("owner", *read_only, None, None),
        Visitor::Guest { job, until } => ("guest", true, Some(job), Some(until)),
    };
    json!({
        "visitor": kind, "read_only": read_only, "job": job, "until": until,
        "terminal": crate::assets::terminal_engine(), "version": env!("CARGO_PKG_VERSION"),
        "now": outlast_job::clock::now_ms(),
    })
}

/// What the page of a job shows besides its screen.
fn about(job: &Job, visitor: &Visitor) -> Result<Value, Failure> {
    let info = job.info_to_show()?;
    let status = if info.state.is_live() { job.status()? } else { None };
    let awaiting = status.as_ref().and_then(|status| status.awaiting_input.clone());
    let ending =
        info.state.receipt().map(|receipt| receipt.words().unwrap_or_else(|error| error.message.clone()));
    let hide = |text: &str| if visitor.is_owner() { Ok(text.to_owned()) } else { job.hide(text) };
    let mut value = json!({
        "job": job.handle().to_string(), "name": info.name, "command": hide(&info.command)?,
        "state": info.state.name(), "ending": ending, "live": info.state.is_live(),
        "rank": Rank::of(&info.state, awaiting.as_ref(), outlast_job::clock::now_ms()),
        "created_at": info.created_at, "ended_at": crate::cards::ended_at(&info.state),
        "has_terminal": info.has_terminal(),
        "size": match info.streams {
            outlast_job::Streams::Terminal(size) => Some(size),
            _ => None,
        },
    });
    if let (true, Some(more)) = (visitor.is_owner(), value.as_object_mut()) {
        let questions = status.as_ref().map(|status| status.questions.clone()).unwrap_or_default();
        let ports = status.as_ref().map(|status| status.ports.clone()).unwrap_or_default();
        let processes = status.as_ref().map(|status| status.processes.len());
        more.extend([
            ("queued".into(), json!(crate::cards::queued(&info.state))),
            ("description".into(), json!(info.description)),
            ("folder".into(), json!(info.cwd)),
            ("host".into(), json!(job.handle().host().map(|host| host.to_string()))),
            ("session".into(), json!(info.session)),
            ("awaiting".into(), json!(awaiting)),
            ("questions".into(), json!(questions)),
            ("ports".into(), json!(ports)),
            ("processes".into(), json!(processes)),
            ("held_by".into(), json!(status.as_ref().and_then(|status| status.held_by.clone()))),
            ("log_end".into(), json!(job.log_end())),
            ("outcome".into(), json!(job.outcome().ok().flatten())),
        ]);
    }
    Ok(value)
}

/// A screen with its colours: now, at the end, or at a moment.
pub(crate) fn screen(job: &Job, at_ms: Option<u64>) -> Result<Value, Failure> {
    if let Some(at) = at_ms {
        return to_value(&job.screen_at(Moment::Time(at), true)?);
    }
    match job.screen(true, 0) {
        Err(failure) if failure.kind == Kind::NotRunning => last_screen(job),
        Err(failure) if failure.kind == Kind::Usage => last_lines(job),
        shot => to_value(&shot?),
    }
}

/// Logs up to this length are folded again to have the last screen with its colours.
const MAX_FOLDED: u64 = 4 << 20;

fn last_screen(job: &Job) -> Result<Value, Failure> {
    if job.log_end() <= MAX_FOLDED && job.info()?.has_terminal() {
        return to_value(&job.screen_at(Moment::Time(u64::MAX), true)?);
    }
    match job.last_screen()? {
        Some(text) => Ok(as_rows(&text)),
        None => last_lines(job),
    }
}

/// A job on pipes has no screen: its last lines.
fn last_lines(job: &Job) -> Result<Value, Failure> {
    let range = ReadText { lines: Some(Lines::Last(24)), max: 8192, ..ReadText::default() };
    let text = job.read(range)?;
    Ok(as_rows(if text.tail.is_empty() { &text.head } else { &text.tail }))
}

fn as_rows(text: &str) -> Value {
    let rows: Vec<&str> = text.lines().collect();
    json!({ "rows": rows, "size": { "cols": 80, "rows": rows.len().max(1) }, "title": "", "offset": 0 })
}

/// Answers a program that stands still, as `outlast policy answer` does.
fn answer(home: &Home, job: &Job, number: u64, allow: bool) -> Result<Value, Failure> {
    if Gate::is_in_a_job() {
        let said = "this server runs inside a job, and can't answer what its user is asked";
        return Err(Failure::new(Kind::Denied, said).hint("start outlast web in a terminal of your own"));
    }
    let status = job.status()?;
    let asked = status.into_iter().flat_map(|status| status.questions).find(|asked| asked.question == number);
    let Some(asked) = asked else {
        return Err(Failure::usage(format!("question {number} is not asked, or not any more")));
    };
    let gate = Gate::open(home, Door::Web)?;
    let question = gate.exec_question(&job.info()?.session, job.handle(), &asked);
    let noted = gate.answered(&question, if allow { Answer::Yes } else { Answer::No });
    if allow {
        let _pass = noted?;
    }
    job.answer_question(number, allow, BY)?;
    Ok(json!({ "allowed": allow }))
}

/// Has an order judged. Where the policy asks, the person in front of the page is who answers: the page shows the question, and
/// calls again with what it has shown.
pub(crate) fn passed(home: &Home, kind: OrderKind<'_>, agreed: Option<&str>) -> Result<Pass, Failure> {
    let gate = Gate::open(home, Door::Web)?;
    match gate.judge(&Order { session: SESSION, kind })? {
        Judged::Free(pass) => Ok(pass),
        Judged::Refused(failure) => Err(failure),
        Judged::Asked(question) => {
            let text = question.text();
            let shown = hash(&text);
            if agreed == Some(shown.as_str()) {
                return gate.answered(&question, Answer::Yes);
            }
            Err(Failure::new(Kind::Denied, text).hint(format!("{AGREE}{shown}")))
        }
    }
}

/// Has one order judged that needs no pass. A policy that does not load stops nobody from looking at their own jobs, or from sitting down
/// in front of them.
pub(crate) fn allowed(home: &Home, kind: OrderKind<'_>) -> Result<(), Failure> {
    let is_persons = matches!(kind, OrderKind::Secret | OrderKind::Attach { .. });
    match Gate::open(home, Door::Web) {
        Ok(_) => passed(home, kind, None).map(|_| ()),
        Err(_) if is_persons || kind.only_looks() => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// How a hint begins that names the question which the page has to show.
const AGREE: &str = "agree:";

pub(crate) fn to_value(value: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::system("cannot write an answer", error))
}
