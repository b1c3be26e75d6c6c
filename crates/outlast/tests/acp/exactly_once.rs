//! Events are in a conversation once: many of them, and whoever dies in between.

use outlast_job::Handle;
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::registry::Home;
use outlast_testkit::{Dice, TEST_TIMEOUT, eventually, processes};
use rustix::process::Signal;

use super::sidecar::{SESSION, Stand};
use super::{gate, open_gate, prompt};

const PLENTY: [&str; 8] =
    ["--window", "1ms", "--per-minute", "100000", "--per-hour", "400000", "--bytes-per-hour", "1GiB"];

/// The outbox of the conversation's jobs, as keepers write to it.
fn outbox(stand: &Stand) -> Outbox {
    Outbox::open(&Home::open(stand.sandbox.home()).unwrap(), &stand.owner()).unwrap()
}

fn happen(outbox: &Outbox, count: u64) {
    let event = |i| {
        Entry::about(Handle::new(i % 5 + 1), None, outlast_job::EntryKind::Pattern, format!("[w] number {i}"))
    };
    outbox.append(&mut (0..count).map(event).collect::<Vec<_>>()).unwrap();
}

/// Every event that the agent's conversation accounts for, in order.
fn told(stand: &Stand) -> Vec<u64> {
    let mut numbers = Vec::new();
    for entry in stand.history() {
        let lines = entry["user"].as_str().unwrap().lines().filter_map(|line| line.strip_prefix("- "));
        for line in lines {
            let (range, _) = line.split_once(": ").unwrap();
            let (first, last) = range.split_once(" to ").unwrap_or((range, range));
            numbers.extend(first.parse::<u64>().unwrap()..=last.parse().unwrap());
        }
    }
    numbers
}

#[test]
fn a_thousand_events_during_a_turn_are_one_prompt_after_it() {
    let stand = Stand::new(&["--window", "1ms"]);
    let gate = gate(&stand.sandbox);
    let mut editor = stand.open();
    let turn = editor.ask("session/prompt", prompt(SESSION, &format!("hold {gate}")));
    stand.prompted(1);
    let outbox = outbox(&stand);
    for _ in 0..100 {
        happen(&outbox, 10);
    }
    assert_eq!(stand.history().len(), 1, "nothing is told while a turn runs");
    open_gate(&gate);
    editor.answer(turn);
    let prompts = stand.prompted(2);
    assert!(prompts[1].len() <= 8192, "{} bytes", prompts[1].len());
    assert_eq!(told(&stand), (1..=1000).collect::<Vec<_>>());
    editor.call("session/prompt", prompt(SESSION, "say done"));
    assert_eq!(stand.prompted(3)[2], "say done", "nothing is told twice");
}

#[test]
fn kills_of_the_sidecar_lose_nothing_and_repeat_nothing() {
    let stand = Stand::new(&PLENTY);
    let mut dice = Dice::new();
    let mut editor = stand.open();
    let outbox = outbox(&stand);
    let mut happened = 0;
    while happened < 1000 {
        let count = (1 + dice.below(100)).min(1000 - happened);
        happen(&outbox, count);
        happened += count;
        if dice.below(3) == 0 {
            editor.ask("session/prompt", prompt(SESSION, "say something"));
        }
        // Somewhere between nothing told and all of it told and answered.
        let so_far = editor.heard().len() + usize::try_from(dice.below(4)).unwrap();
        editor.wait_for("a few more messages, or all told", |all| {
            let all_told = || told(&stand).len() as u64 == happened;
            (all.len() >= so_far || all_told()).then_some(())
        });
        editor.kill_dash_nine();
        editor = stand.load();
    }
    eventually("everything is told", TEST_TIMEOUT, || {
        let told = told(&stand);
        if told.last() == Some(&1000) { Ok(()) } else { Err(told.last().copied()) }
    });
    assert_eq!(told(&stand), (1..=1000).collect::<Vec<_>>());
    drop(editor);
}

#[test]
fn a_prompt_that_got_through_before_the_kill_is_not_sent_again() {
    let mut stand = Stand::new(&PLENTY);
    let gate = gate(&stand.sandbox);
    // It has it and says nothing: the sidecar can't know.
    let told_by: &'static str = Box::leak(format!("hold {gate}").into_boxed_str());
    stand.told = told_by;
    let editor = stand.open();
    let outbox = outbox(&stand);
    happen(&outbox, 5);
    stand.prompted(1);
    editor.kill_dash_nine();
    stand.told = "say ok";
    let mut editor = stand.load();
    happen(&outbox, 5);
    stand.prompted(2);
    editor.call("session/prompt", prompt(SESSION, "say done"));
    assert_eq!(told(&stand), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_prompt_that_did_not_get_through_before_the_kill_is_sent_again() {
    let stand = Stand::new(&PLENTY);
    let editor = stand.open();
    let agent = stand.sandbox.processes().into_iter().find(|process| process.comm == "acp_agent").unwrap();
    processes::send(&agent, Signal::STOP);
    let outbox = outbox(&stand);
    happen(&outbox, 5);
    editor
        .wait_for("the sidecar has sent it", |all| super::chunks(all, "user_message_chunk").first().cloned());
    processes::send(&agent, Signal::KILL);
    editor.kill_dash_nine();
    assert_eq!(told(&stand), Vec::<u64>::new());
    let mut editor = stand.load();
    stand.prompted(1);
    editor.call("session/prompt", prompt(SESSION, "say done"));
    assert_eq!(told(&stand), (1..=5).collect::<Vec<_>>());
}
