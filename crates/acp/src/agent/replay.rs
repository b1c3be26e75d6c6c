//! Replays a session: its jobs, from the files.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{ContentChunk, ListSessionsResponse, SessionInfo, SessionUpdate};
use outlast_job::Job;
use outlast_job::registry::format::Info;

use super::{Client, Shared, streams};
use crate::showing::{ReadWith, View};

/// The most jobs that are replayed: the newest.
const MAX_JOBS: usize = 50;
/// The most bytes of each job's output.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

fn jobs_of(client: &Client) -> Vec<Info> {
    let mut jobs = client.shared.outlast.jobs();
    jobs.retain(|info| info.session == client.owner);
    let old = jobs.len().saturating_sub(MAX_JOBS);
    jobs.drain(..old);
    jobs
}

fn job(client: &Client, info: &Info) -> Option<Job> {
    client.shared.outlast.job(&info.handle.to_string()).ok()
}

/// Sends the session's past jobs; returns those that still run.
pub(super) fn past(client: &Client) -> Vec<Job> {
    let mut live = Vec::new();
    for info in jobs_of(client) {
        let Some(job) = job(client, &info) else { continue };
        client.send(SessionUpdate::UserMessageChunk(ContentChunk::new(info.command.clone().into())));
        if info.state.is_live() {
            live.push(job);
            continue;
        }
        let output = job
            .read_text(0, MAX_OUTPUT_BYTES)
            .map(|text| super::turn::joined(&job, &text))
            .unwrap_or_default();
        client.send(
            View::new(streams::call_id(info.handle), &info, false, ReadWith::Slash)
                .past(&info, output.trim_end()),
        );
    }
    live
}

/// Goes on with the tool calls that the client has seen begin and not end, from where it was, and begins those of jobs that
/// it has not seen.
pub(super) fn open_calls(client: &Client) {
    let open = client.session.shown.open_calls();
    for (handle, place) in &open {
        match client.shared.outlast.job(&handle.to_string()) {
            Ok(job) => streams::go_on(client, job, place),
            // Retention has removed it.
            Err(_) => client.session.shown.ended(*handle),
        }
    }
    let seen = |info: &&Info| open.iter().any(|(handle, _)| *handle == info.handle);
    let new = jobs_of(client).into_iter().filter(|info| info.state.is_live() && !seen(&info));
    new.filter_map(|info| job(client, &info)).for_each(|job| streams::begin(client, job));
}

/// Every session that has jobs.
pub(super) fn sessions(shared: &Shared) -> ListSessionsResponse {
    let mut sessions: BTreeMap<String, SessionInfo> = BTreeMap::new();
    for info in shared.outlast.jobs() {
        if let Some(id) = info.session.strip_prefix("acp:") {
            let title = crate::showing::one_line(&info.command);
            let fresh = SessionInfo::new(id.to_owned(), info.cwd.clone()).title(title);
            sessions.entry(id.to_owned()).or_insert(fresh);
        }
    }
    ListSessionsResponse::new(sessions.into_values().collect())
}
