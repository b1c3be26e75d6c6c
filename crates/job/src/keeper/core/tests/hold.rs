//! A person who has taken the job over: who may type meanwhile, and when it ends by itself.

use super::*;
use crate::wire::Hold;

/// The answer to a request, and the events that it made.
fn ask(world: &mut World, peer: u64, verb: Verb) -> (Option<Answer>, Vec<EventKind>) {
    let client = Client { peer, request: 1 };
    world.core.turn(Input::Request { client, verb, modes: None }, world.now(), &mut world.effects);
    drain(world, Some(client))
}

fn drain(world: &mut World, client: Option<Client>) -> (Option<Answer>, Vec<EventKind>) {
    let (mut answer, mut events) = (None, Vec::new());
    while let Some(effect) = world.effects.next() {
        match effect {
            Effect::Reply { client: to, answer: said } if Some(to) == client => answer = Some(said),
            Effect::Event(event) => events.push(event.what),
            _ => {}
        }
    }
    (answer, events)
}

fn hold(holder: &str, take: bool) -> Verb {
    Verb::Hold(Hold { holder: holder.into(), by: "a person".into(), take })
}

fn attach(holder: &str) -> Verb {
    Verb::Attach(Attach { read_only: true, holder: Some(holder.into()), ..Attach::default() })
}

fn send(holder: Option<&str>) -> Verb {
    Verb::Send(Send { text: "x".into(), holder: holder.map(ToOwned::to_owned), ..Send::default() })
}

/// Whether somebody of no name is refused.
fn is_held(world: &mut World) -> bool {
    match ask(world, 3, send(None)).0 {
        Some(Answer::Error(failure)) => {
            assert!(failure.message.contains("held by a person"), "{failure:?}");
            true
        }
        None => false,
        other => panic!("{other:?}"),
    }
}

/// Lets time pass; what happened by it.
fn pass(world: &mut World, seconds: u64) -> Vec<EventKind> {
    world.clock += Duration::from_secs(seconds);
    world.ms += seconds * 1000;
    world.core.turn(Input::Time, world.now(), &mut world.effects);
    drain(world, None).1
}

fn taken() -> World {
    let mut world = World::new();
    assert!(matches!(ask(&mut world, 1, attach("h")).0, Some(Answer::Attached(_))));
    let (answer, events) = ask(&mut world, 2, hold("h", true));
    assert!(matches!(answer, Some(Answer::Done {})), "{answer:?}");
    assert!(matches!(events[..], [EventKind::Taken { .. }]), "{events:?}");
    world
}

fn is_given_back(events: &[EventKind], words: &str) -> bool {
    events.iter().any(|event| matches!(event, EventKind::GivenBack { why, .. } if why.contains(words)))
}

#[test]
fn only_the_holder_types_until_it_is_given_back() {
    let mut world = taken();
    assert!(is_held(&mut world));
    assert!(ask(&mut world, 2, send(Some("h"))).0.is_none(), "it is typed, and answered when it was taken");
    assert!(matches!(ask(&mut world, 2, send(Some("other"))).0, Some(Answer::Error(_))));
    let (_, nothing) = ask(&mut world, 3, hold("other", false));
    assert!(nothing.is_empty(), "nobody else gives it back");
    assert!(is_held(&mut world));
    let (_, events) = ask(&mut world, 2, hold("h", false));
    assert!(is_given_back(&events, "given back"), "{events:?}");
    assert!(!is_held(&mut world));
}

#[test]
fn a_hold_ends_soon_after_its_holder_sees_nothing_any_more() {
    let mut world = taken();
    world.core.turn(Input::PeerLeft(1), world.now(), &mut world.effects);
    assert!(pass(&mut world, 29).is_empty() && is_held(&mut world));
    // A page that is loaded again keeps it.
    ask(&mut world, 1, attach("h"));
    assert!(pass(&mut world, 120).is_empty() && is_held(&mut world));
    world.core.turn(Input::PeerLeft(1), world.now(), &mut world.effects);
    ask(&mut world, 1, attach("somebody else"));
    assert!(is_given_back(&pass(&mut world, 30), "connection"));
    assert!(!is_held(&mut world));
}

#[test]
fn a_holder_who_types_nothing_has_given_it_back() {
    let mut world = taken();
    pass(&mut world, 599);
    ask(&mut world, 2, send(Some("h")));
    assert!(pass(&mut world, 599).is_empty() && is_held(&mut world));
    assert!(is_given_back(&pass(&mut world, 1), "10 minutes"));
}

#[test]
fn another_person_takes_it_over_and_is_the_holder_then() {
    let mut world = taken();
    let (_, events) = ask(&mut world, 3, hold("second", true));
    assert!(matches!(events[..], [EventKind::GivenBack { .. }, EventKind::Taken { .. }]), "{events:?}");
    assert!(matches!(ask(&mut world, 2, send(Some("h"))).0, Some(Answer::Error(_))));
    for bad in ["", &"x".repeat(200)] {
        assert!(matches!(ask(&mut world, 2, hold(bad, true)).0, Some(Answer::Error(_))));
    }
}
