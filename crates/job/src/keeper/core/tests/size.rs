//! What a core keeps has a bound, whatever happens and however often.

use super::*;

impl Core {
    /// How much is kept that grows with what happens, in bytes and entries.
    pub(super) fn kept(&self) -> usize {
        self.typing.bytes()
            + self.typing.pending()
            + self.notifier.entries()
            + self.viewers.count()
            + self.conditions.count()
            + self.phase.ending().map_or(0, ending::Ending::pending)
            + self.ports.len()
            + self.questions.count()
            + self.steps.count()
            + self.sockets.len()
    }
}

/// A small generator of numbers: the same order in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn a_million_inputs_leave_no_more_behind_than_a_thousand() {
    let (mut world, mut dice) = (World::new(), Dice(7));
    while world.inputs < 1_000_000 {
        let peer = dice.below(PEERS);
        let happening = match dice.below(24) {
            0..=6 => Happening::Prints("ready or not\n"),
            7 => Happening::Prints("err: not ready\n"),
            8 => Happening::Prints("\u{1b}[6n"),
            9..=14 => {
                let wish = WISHES[usize::try_from(dice.below(WISHES.len() as u64)).unwrap()];
                match wish {
                    // It goes on forever.
                    Wish::Kill | Wish::KillAtOnce => Happening::Asks(peer, Wish::Typed),
                    // These take long, and are asked less often.
                    Wish::SendMuch
                    | Wish::Attach
                    | Wish::Screen
                    | Wish::WaitForStable
                    | Wish::WaitForPattern
                        if dice.below(50) > 0 =>
                    {
                        Happening::Asks(peer, Wish::Send)
                    }
                    wish => Happening::Asks(peer, wish),
                }
            }
            15 | 16 => Happening::TakesInput(200_000),
            17 => Happening::ProbeFinds(dice.below(2) == 0, Some(8000)),
            18 => Happening::OutboxIsLocked(dice.below(2) == 0),
            19 => Happening::DiskIsFull(dice.below(2) == 0),
            20 => Happening::LogChanges(dice.below(2) == 0),
            21 => Happening::HelperEnds(0),
            _ => Happening::Passes(dice.below(500)),
        };
        world.happens(&happening);
        if dice.below(10) == 0 {
            // Somebody leaves, and comes again as somebody else.
            world.happens(&Happening::Leaves(peer));
            world.left.remove(&peer);
        }
    }
    world.end();
}
