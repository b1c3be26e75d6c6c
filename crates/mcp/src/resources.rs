//! Each job's screen, transcript and events as resources: `outlast://jobs/3/screen` and so on.

use outlast_job::registry::format::Info;
use outlast_job::request::ReadText;
use outlast_job::{Failure, Job};
use outlast_policy::{Answer, Judged, Order, OrderKind, Pass};
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::engine::Engine;
use crate::printed;

/// The most of a resource that is returned at once; the rest is in the file that the tools name.
const LIMIT: usize = 256 << 10;
/// How many jobs are listed.
const JOBS: usize = 50;

/// What of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Screen,
    Transcript,
    Events,
}

const PARTS: [Part; 3] = [Part::Screen, Part::Transcript, Part::Events];

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Screen => "screen",
            Part::Transcript => "transcript",
            Part::Events => "events",
        }
    }

    fn mime(self) -> &'static str {
        match self {
            Part::Screen | Part::Transcript => "text/plain",
            Part::Events => "application/x-ndjson",
        }
    }

    /// What it is for the policy to read it.
    fn kind(self) -> OrderKind<'static> {
        match self {
            Part::Screen => OrderKind::Screen,
            Part::Transcript | Part::Events => OrderKind::Read,
        }
    }

    fn about(self) -> &'static str {
        match self {
            Part::Screen => "what the terminal shows now",
            Part::Transcript => "what it printed, as plain text",
            Part::Events => "what happened to it, one JSON object a line",
        }
    }
}

/// The resources of the session's jobs, then of others, the newest first.
pub(crate) fn list(engine: &Engine, session: &str) -> Result<Vec<Resource>, ErrorData> {
    let _pass = allowed(engine, session, OrderKind::List)?;
    let mut jobs = engine.outlast.jobs();
    jobs.sort_by_key(|info| (info.session != session, std::cmp::Reverse(info.handle)));
    jobs.truncate(JOBS);
    let has = |info: &Info, part: Part| part != Part::Screen || info.has_terminal();
    let parts =
        |info| PARTS.into_iter().filter(move |part| has(info, *part)).map(move |part| resource(info, part));
    Ok(jobs.iter().flat_map(parts).collect())
}

fn resource(info: &Info, part: Part) -> Resource {
    let handle = info.handle;
    let name = info.name.clone().unwrap_or_else(|| format!("job {handle}"));
    Resource::new(format!("outlast://jobs/{handle}/{}", part.name()), format!("{name} {}", part.name()))
        .with_description(format!("{} ({}): {}", info.command, info.state.name(), part.about()))
        .with_mime_type(part.mime())
}

/// How a resource is named.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |part: Part| {
        ResourceTemplate::new(format!("outlast://jobs/{{handle}}/{}", part.name()), part.name())
            .with_description(format!("Of a job: {}", part.about()))
            .with_mime_type(part.mime())
    };
    PARTS.map(template).into()
}

/// The job and the part that a name stands for.
pub(crate) fn job_of(engine: &Engine, uri: &str) -> Result<(Job, Part), ErrorData> {
    let no = |why: String| ErrorData::resource_not_found(why, Some(json!({"uri": uri})));
    let path = uri.strip_prefix("outlast://jobs/").and_then(|path| path.split_once('/'));
    let Some((reference, part)) = path else {
        return Err(no(format!("{uri} is not a resource of ours; one looks like outlast://jobs/3/screen")));
    };
    let part = PARTS.into_iter().find(|known| known.name() == part);
    let part = part.ok_or_else(|| no(format!("{uri}: a job has screen, transcript and events")))?;
    let job = engine.job(reference).map_err(|failure| no(failure.message))?;
    Ok((job, part))
}

/// Asks the policy about a look. Nobody can be asked here.
fn allowed(engine: &Engine, session: &str, kind: OrderKind<'_>) -> Result<Pass, ErrorData> {
    let judged = match engine.gate.judge(&Order { session, kind }) {
        Ok(Judged::Free(pass)) => return Ok(pass),
        Ok(Judged::Asked(question)) => engine.gate.answered(&question, Answer::Unable),
        Ok(Judged::Refused(failure)) | Err(failure) => Err(failure),
    };
    judged.map_err(|failure| ErrorData::invalid_request(failure.to_string(), None))
}

/// What a resource holds now.
pub(crate) fn read(engine: &Engine, session: &str, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (job, part) = job_of(engine, uri)?;
    let _pass = allowed(engine, session, part.kind())?;
    let text = contents(engine, &job, part)
        .map_err(|failure| ErrorData::internal_error(failure.to_string(), Some(json!({"uri": uri}))))?;
    let contents = ResourceContents::text(text, uri).with_mime_type(part.mime());
    Ok(ReadResourceResult::new(vec![contents]))
}

fn contents(engine: &Engine, job: &Job, part: Part) -> Result<String, Failure> {
    match part {
        Part::Screen => engine.screen_text(job),
        Part::Transcript => Ok(printed::text(job, ReadText { max: LIMIT, ..ReadText::default() })?.text),
        Part::Events => job.event_lines(LIMIT),
    }
}
