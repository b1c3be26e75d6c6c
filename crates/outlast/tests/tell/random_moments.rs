//! Notices at random moments, into an agent that a person uses meanwhile: nothing is answered, sent along or lost.

use std::time::Duration;

use outlast_testkit::{Dice, Sandbox, TEST_TIMEOUT, eventually};

use super::agent::Agent;
use super::{entries, sandbox};

/// A sample; `clients/agents/panes` does it with real agents, a hundred times each.
const TRIES: usize = 8;
const DRAFT: &str = "mine";

/// What the person does while the notice is on its way.
#[derive(Clone, Copy, Debug)]
enum Person {
    Nothing,
    /// Has the agent ask for a permission, and says yes later.
    IsAsked,
    /// Types something, and sends it later.
    Drafts,
    /// The same, in two rows.
    DraftsTwoRows,
}

const PERSONS: [Person; 4] = [Person::Nothing, Person::IsAsked, Person::Drafts, Person::DraftsTwoRows];

/// Does what the person begins with; a key at a time, at random moments.
fn begin(agent: &Agent, person: Person, dice: &mut Dice) {
    let mut press = |keys: &[&str]| {
        std::thread::sleep(Duration::from_millis(dice.below(120)));
        agent.keys(keys);
    };
    match person {
        Person::Nothing => {}
        Person::IsAsked => {
            "ask".chars().for_each(|c| press(&["-l", &c.to_string()]));
            press(&["Enter"]);
        }
        Person::Drafts => DRAFT.chars().for_each(|c| press(&["-l", &c.to_string()])),
        Person::DraftsTwoRows => {
            DRAFT.chars().for_each(|c| press(&["-l", &c.to_string()]));
            press(&["C-j"]);
            press(&["-l", "more"]);
        }
    }
}

/// Waits until the notice of a job was sent, or it was told that it was not.
fn is_final(sandbox: &Sandbox, agent: &Agent, job: u64) -> (usize, usize) {
    let counts = || {
        let sent = agent.sent().iter().filter(|text| text.contains(&format!("job {job} "))).count();
        let all = entries(sandbox);
        let failed =
            all.iter().filter(|entry| entry["event"] == "wake_failed" && entry["job"] == job).count();
        (sent, failed)
    };
    eventually("the notice is sent, or told as not given", TEST_TIMEOUT, || match counts() {
        (0, 0) => Err((agent.notes(), agent.server.shows(), entries(sandbox))),
        (sent, failed) => Ok((sent, failed)),
    })
}

#[test]
fn a_notice_at_any_moment_does_no_harm_and_is_not_lost() {
    let mut dice = Dice::new();
    for round in 0..TRIES {
        let person = PERSONS[round % PERSONS.len()];
        let sandbox = sandbox();
        let Some(agent) = Agent::start(&sandbox, "❯", "idle") else { return };
        let config = sandbox.root().join("config/outlast");
        std::fs::create_dir_all(&config).unwrap();
        let wake = "[[wake]]\nkind = \"tmux\"\npane = \"%0\"\ntimeout = \"2s\"\non = [\"exit\"]\n";
        std::fs::write(config.join("config.toml"), wake).unwrap();
        let line = format!("sleep 0.{:03}", dice.below(700));
        let call = sandbox.call(["--json", "run", "-d", &line]);
        let call = call.env("TMUX", format!("{},0,0", agent.server.socket().display()));
        let job = call.run().ok().json()["handle"].as_u64().unwrap();
        begin(&agent, person, &mut dice);
        let (sent, failed) = is_final(&sandbox, &agent, job);
        let notes = agent.notes();
        let told = format!("{person:?}, {sent} sent, {failed} failed:\n{notes}");
        assert!(sent <= 1 && failed <= 1, "{told}");
        assert!(!notes.contains("approved"), "a dialog was answered: {told}");
        // Nobody has pressed Enter on a draft. (A person who types and presses Enter between our paste and our Enter sends
        // both; that is the window that is left.)
        let sends = matches!(person, Person::IsAsked);
        for text in agent.sent().into_iter().filter(|_| !sends) {
            assert!(text.starts_with("'[outlast: automatic notice] job 1 exit: completed"), "{told}");
            assert!(!text.contains(DRAFT), "{told}");
        }
        agent.server.end();
    }
}
