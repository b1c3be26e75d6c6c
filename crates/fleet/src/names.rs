//! What subjects, buckets and streams are called. Permissions are written with the same names, so that a host can only speak as itself.

use outlast_protocol::Failure;

/// Bucket: who is there, for as long as it says so.
pub const HOSTS: &str = "outlast_hosts";
/// Bucket: every host that has ever joined.
pub const MEMBERS: &str = "outlast_members";
/// Bucket: jobs in short.
pub const JOBS: &str = "outlast_jobs";
/// Bucket: what became of orders. An order that nobody has claimed is not in it.
pub const ORDERS: &str = "outlast_orders";
/// Stream: events of all outboxes.
pub const EVENTS: &str = "OUTLAST_EVENTS";
/// Stream: how orders ended.
pub const RESULTS: &str = "OUTLAST_RESULTS";
/// Object store: whole logs that were asked for.
pub const LOGS: &str = "outlast_logs";

/// The longest name of a label.
const MAX_LABEL: usize = 32;

/// Bytes of a user to a host: `ol.ask.HOST.USER.PIPE`.
#[must_use]
pub fn ask(host: &str, user: &str, pipe: &str) -> String {
    format!("ol.ask.{host}.{user}.{pipe}")
}

/// All that is asked of a host.
#[must_use]
pub fn asked_of(host: &str) -> String {
    format!("ol.ask.{host}.*.*")
}

/// Bytes of a host to a user: `ol.say.USER.HOST.PIPE`.
#[must_use]
pub fn say(user: &str, host: &str, pipe: &str) -> String {
    format!("ol.say.{user}.{host}.{pipe}")
}

/// Events of an outbox: `ol.ev.HOST.OUTBOX`.
#[must_use]
pub fn event(host: &str, outbox: &str) -> String {
    format!("ol.ev.{host}.{outbox}")
}

/// Every event.
pub const ALL_EVENTS: &str = "ol.ev.>";

/// The stream of a label's orders.
#[must_use]
pub fn queue_stream(label: &str) -> String {
    format!("OUTLAST_Q_{label}")
}

/// All orders of a label.
#[must_use]
pub fn queue_subjects(label: &str) -> String {
    format!("ol.q.{label}.>")
}

/// Orders of a label and a priority: `ol.q.LABEL.PRIORITY.USER`.
#[must_use]
pub fn queue(label: &str, priority: &str, user: &str) -> String {
    format!("ol.q.{label}.{priority}.{user}")
}

/// Where the broker says that another server leads a reader of a label's orders.
#[must_use]
pub fn leader_elected(label: &str) -> String {
    format!("$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.{}.*", queue_stream(label))
}

/// How an order ended: `ol.res.LABEL.ORDER`.
#[must_use]
pub fn result(label: &str, order: &str) -> String {
    format!("ol.res.{label}.{order}")
}

/// Every result.
pub const ALL_RESULTS: &str = "ol.res.>";

/// An outbox in a subject and in message ids: sessions may hold anything, so it is the beginning of a hash.
#[must_use]
pub fn outbox(session: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, session.as_bytes());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A name that fits between the dots of a subject: of a host, a user or a label.
///
/// # Errors
/// A usage failure.
pub fn token(what: &str, text: &str) -> Result<String, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if begins && text.len() <= MAX_LABEL && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(Failure::usage(format!("invalid {what} {text:?}"))
        .hint(format!("a letter, then letters, digits, '-' or '_', at most {MAX_LABEL} in all")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_a_subject() {
        for wrong in ["", "a.b", "*", ">", "a b", "1a", "ü", &"x".repeat(33)] {
            assert!(token("host", wrong).is_err(), "{wrong}");
        }
        assert_eq!(token("host", "gpu-1").unwrap(), "gpu-1");
        assert_eq!(outbox("claude 1.*>").len(), 16);
        assert_ne!(outbox("a"), outbox("b"));
    }
}
