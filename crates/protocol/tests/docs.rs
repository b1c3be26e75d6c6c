//! The pages about formats name every word that there is: a word that is added without them fails here.

use std::path::Path;

use outlast_protocol::condition::{CONDITIONS, ConditionWord};
use outlast_protocol::wire::Verb;
use outlast_protocol::{EntryKind, EventKind, Reason};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn names<'a>(page: &str, text: &str, words: impl IntoIterator<Item = &'a str>) {
    for word in words {
        let written = text.contains(&format!("`{word}`")) || text.contains(&format!("\"{word}\""));
        assert!(written, "{page} does not name {word}");
    }
}

/// The words of an enum, as serde lists them when it gets another one.
fn words_in(error: &str) -> Vec<&str> {
    let (_, list) = error.split_once("expected one of ").unwrap_or_else(|| panic!("{error}"));
    list.split('`').skip(1).step_by(2).collect()
}

macro_rules! event_words {
    ($($variant:ident = $word:literal),+ $(,)?) => {
        const EVENTS: &[&str] = &[$($word),+];

        /// Does not compile with an event that is not in the list.
        fn word(event: &EventKind) -> &'static str {
            match event {
                $(EventKind::$variant { .. } => $word,)+
                EventKind::Unknown => "unknown",
            }
        }
    };
}

event_words! {
    Queued = "queued",
    Started = "started",
    Exit = "exit",
    AllGone = "all_gone",
    AwaitingInput = "awaiting_input",
    WentOn = "went_on",
    Listening = "listening",
    Stopped = "stopped",
    Continued = "continued",
    Port = "port",
    Watch = "watch",
    LogFailing = "log_failing",
    LogResumed = "log_resumed",
    LogCapped = "log_capped",
    TookOver = "took_over",
    HeirGone = "heir_gone",
    ExecRefused = "exec_refused",
    HostRefused = "host_refused",
    Asking = "asking",
    Answered = "answered",
    Taken = "taken",
    GivenBack = "given_back",
    StepStarted = "step_started",
    Step = "step",
    StepChanged = "step_changed",
    StepForged = "step_forged",
    Agent = "agent",
}

#[test]
fn the_wire_page_names_every_verb() {
    let error = serde_json::from_str::<Verb>(r#"{"verb":"?"}"#).unwrap_err().to_string();
    let verbs = words_in(&error);
    assert!(verbs.contains(&"watch") && verbs.contains(&"unwatch") && verbs.len() > 12, "{verbs:?}");
    names("wire.md", &page("formats/wire.md"), verbs);
}

#[test]
fn the_wire_page_names_every_condition_and_reason() {
    let text = page("formats/wire.md");
    names("wire.md", &text, CONDITIONS.iter().map(ConditionWord::word));
    names("wire.md", &text, Reason::ALL.iter().map(|reason| reason.name()));
}

#[test]
fn both_pages_name_every_event() {
    assert_eq!(EventKind::WentOn.name(), word(&EventKind::WentOn));
    names("wire.md", &page("formats/wire.md"), EVENTS.iter().copied());
    names("job-directory.md", &page("formats/job-directory.md"), EVENTS.iter().copied());
}

#[test]
fn the_page_about_telling_names_every_kind_of_entry() {
    let kinds = EntryKind::ALL.iter().filter(|kind| **kind != EntryKind::Unknown);
    names("telling.md", &page("guide/telling.md"), kinds.map(|kind| kind.name()));
}

/// Serde cannot list the fields of a record whose state is flattened into it: they are read from the source.
#[test]
fn the_page_about_folders_names_every_field_of_a_record() {
    let source = include_str!("../src/info.rs");
    let (_, record) = source.split_once("pub struct Info {").unwrap();
    let (record, _) = record.split_once("\n}").unwrap();
    let fields = record.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
    let fields: Vec<&str> = fields.map(|(field, _)| field).collect();
    assert!(fields.contains(&"handle") && fields.contains(&"state"), "{fields:?}");
    // Its parts are fields of their own, and are in the receipt.
    let fields = fields.into_iter().filter(|field| *field != "state");
    names("job-directory.md", &page("formats/job-directory.md"), fields);
}
