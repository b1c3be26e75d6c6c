//! What is typed or queued for an agent: a fixed form of plain words. It says that a machine wrote it, which job, what
//! happened, and the call that tells more. No byte of a job's output or name is in it: whatever reads it, a person, an
//! agent or by mistake a shell, finds nothing in it that a job has chosen.

use std::collections::BTreeSet;

use super::{Delivery, Says, Wake};
use crate::lifecycle::{Outcome, State};
use crate::outbox::Entry;
use crate::wire::event::EventKind;

/// No notice in a terminal is longer.
pub const LONGEST_NOTICE: usize = 200;
/// Jobs that a notice names; more are counted.
const MAX_NAMED: usize = 8;
/// Exit codes of the job that types a submitted command.
pub const SUBMISSION_ASKS: i32 = 6;
/// It did not stand still in its time.
pub const SUBMISSION_DEADLINE: i32 = 4;

/// The notice for some events of a session, oldest first. `again`: it may have been told before.
#[must_use]
pub(super) fn notice(wake: &Wake, entries: &[&Entry], again: bool) -> String {
    let text = words(wake, entries, again);
    match &wake.how {
        Delivery::Tmux { shell: Some(shell), .. } => shell.ignores(&text),
        Delivery::Tmux { shell: None, .. }
        | Delivery::Exec { .. }
        | Delivery::Webhook { .. }
        | Delivery::Agent { .. }
        | Delivery::Codex { .. }
        | Delivery::File { .. } => text,
    }
}

fn words(wake: &Wake, entries: &[&Entry], again: bool) -> String {
    let Some(last) = entries.last() else { return String::new() };
    if let Delivery::Tmux { says: Some(says), .. } = &wake.how {
        return submission(says, last);
    }
    let jobs: BTreeSet<u64> = entries.iter().map(|entry| entry.job.number()).collect();
    let again = if again { ", again" } else { "" };
    let head = format!("[outlast: automatic notice{again}]");
    if entries.len() == 1 {
        let how =
            if let Some(EventKind::Exit { state }) = &last.detail { ended(state) } else { String::new() };
        let job = last.job;
        return format!("{head} job {job} {}{how} | more: {}", last.event, more(last));
    }
    let named: Vec<String> = jobs.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let rest = jobs.len().saturating_sub(MAX_NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let (word, named) = (if jobs.len() == 1 { "job" } else { "jobs" }, named.join(" "));
    format!("{head} {} events of {word} {named}{rest} | more: outlast events", entries.len())
}

/// The call that tells more, in words of ours alone.
fn more(entry: &Entry) -> String {
    let call = &entry.more;
    if is_plain(call) && call.len() <= LONGEST_NOTICE / 2 {
        call.clone()
    } else {
        "outlast events".to_owned()
    }
}

/// How a submitted command went.
fn submission(says: &Says, entry: &Entry) -> String {
    if let Says::Own { text } = says {
        return text.clone();
    }
    let code = match &entry.detail {
        Some(EventKind::Exit { state }) => state.receipt().and_then(|receipt| match receipt.outcome {
            Outcome::Exited { code } => Some(code),
            Outcome::Signalled { .. } | Outcome::NotStarted { .. } => None,
        }),
        _ => None,
    };
    let how = match code {
        Some(0) => "Command complete.",
        Some(SUBMISSION_ASKS) => "Command asks for an answer.",
        Some(SUBMISSION_DEADLINE) => "Command still runs: the time is up.",
        Some(_) => "Command was not typed.",
        None => "Command is no longer watched.",
    };
    format!("[SYSTEM COMMAND] {how} Resume. | outlast job {}", entry.job)
}

/// How a job ended, in words of the kernel alone.
fn ended(state: &State) -> String {
    let how = match state.receipt().map(|receipt| &receipt.outcome) {
        Some(Outcome::Exited { code }) => format!(", exit code {code}"),
        Some(Outcome::Signalled { signal, .. }) if is_plain(signal) => format!(", {signal}"),
        Some(Outcome::Signalled { .. } | Outcome::NotStarted { .. }) | None => String::new(),
    };
    format!(": {}{how}", state.name())
}

/// Words that mean nothing else to a shell or to an agent.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " ._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Handle;
    use crate::wire::event::EntryKind;

    #[test]
    fn a_notice_is_short_and_holds_nothing_of_the_job() {
        let wake = Wake::parse("tmux:%1").unwrap();
        let mut entry = Entry::about(Handle::new(7), Some("web"), EntryKind::Exit, "$(rm x)".repeat(50));
        entry.more = "outlast read 7 --tail 20".into();
        let said = notice(&wake, &[&entry], false);
        assert_eq!(said, "[outlast: automatic notice] job 7 exit | more: outlast read 7 --tail 20");
        entry.more = "outlast read 7; touch x".into();
        let said = notice(&wake, &[&entry], true);
        assert_eq!(said, "[outlast: automatic notice, again] job 7 exit | more: outlast events");
    }

    #[test]
    fn several_jobs_are_named_in_one_notice_of_bounded_length() {
        let wake = Wake::parse("tmux:%1").unwrap();
        let entries: Vec<Entry> = (0..300)
            .map(|n| Entry::about(Handle::new(u64::MAX - n), Some("name"), EntryKind::Exit, "x"))
            .collect();
        let all: Vec<&Entry> = entries.iter().collect();
        let said = notice(&wake, &all[..2], false);
        assert!(said.contains("2 events of jobs") && !said.contains("name"), "{said}");
        let short: Vec<Entry> =
            (90_000..90_300).map(|n| Entry::about(Handle::new(n), None, EntryKind::Exit, "x")).collect();
        let said = notice(&wake, &short.iter().collect::<Vec<_>>(), true);
        assert!(said.len() <= LONGEST_NOTICE && said.contains("and 292 more"), "{said}");
    }
}
