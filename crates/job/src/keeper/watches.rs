//! Watches on the disk: written when they change, and read by an heir. And how patterns read the log back.

use std::time::Instant;

use super::Keeper;
use super::channel::{Channel, blank};
use super::conditions::{Conditions, Facts, Moment, Pace};
use super::core::{Core, Effects, Input, Now};
use super::inherited::Inherited;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::{Durability, read_small, replace};
use crate::search::read_range;
use crate::secrets::SharedMasks;
use crate::wire::event::EventKind;
use crate::wire::watch::Watch;

/// The buffer for reading the log back is not kept larger than this between rounds.
const BUFFER_KEPT: usize = 64 << 10;

/// The conditions that the job was started with, or those that a dead keeper had.
pub(super) fn conditions_of(inherited: &Inherited, info: &Info, end: u64) -> Conditions {
    let now = Instant::now();
    let moment = Moment { now, end, last_output: now, running: info.state.is_live() };
    let facts = Facts { moment, streams: info.streams, rows: &[], awaiting: None, ports: &[] };
    Conditions::new(inherited.spec.notify.conditions(), watches_of(inherited), &facts)
}

/// What a dead keeper told of its watches is not told again.
fn watches_of(inherited: &Inherited) -> Vec<Watch> {
    let kept = read_small(&inherited.job, layout::WATCHES, 1 << 20).ok();
    let kept: Option<Vec<Watch>> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut watches = kept.unwrap_or_else(|| inherited.spec.notify.watches());
    if watches.is_empty() {
        return watches;
    }
    for event in inherited.job.events() {
        let EventKind::Watch { fired } = event.what else { continue };
        watches.retain_mut(|watch| {
            if watch.id == fired.watch {
                watch.from = watch.from.map(|from| from.max(fired.to));
                return watch.each;
            }
            true
        });
    }
    watches
}

/// For reading the log back.
#[derive(Default)]
pub(super) struct SearchBuffer(Vec<u8>);

impl SearchBuffer {
    /// Gives patterns the next piece of the log each; says whether any had not seen all of it.
    pub(super) fn search(
        &mut self,
        (channel, masks): (&Channel, &SharedMasks),
        pace: Pace,
        core: &mut Core,
        effects: &mut Effects,
    ) -> bool {
        let (log, shared) = (&channel.log, channel.shared);
        let end = log.end();
        let unread = core.unread(end, pace);
        for piece in &unread {
            let masks = piece.masked.then_some(masks);
            let bytes = read_range(log, (piece.from, piece.len), masks, &mut self.0);
            let to = piece.from + piece.len as u64;
            let blanked = (channel.unreadable.bytes_in(piece.from, to) > 0).then(|| {
                let mut bytes = bytes.to_vec();
                blank(&mut bytes, piece.from, &channel.unreadable);
                bytes
            });
            let bytes = blanked.as_deref().unwrap_or(bytes);
            shared.set_interpreted(channel.index, piece.from, to);
            core.turn(Input::Searched { piece: *piece, bytes, end }, Now::read(), effects);
            shared.clear_interpreted();
        }
        !unread.is_empty()
    }
}

impl Keeper {
    /// Patterns see the next piece of what was printed; says whether there was any.
    pub(super) fn search(&mut self) -> bool {
        let Some(channel) = self.channels.first() else { return false };
        let log = (channel, &self.inherited.masks);
        let more = self.search_buffer.search(log, Pace::Round, &mut self.core, &mut self.effects);
        if self.search_buffer.0.len() < BUFFER_KEPT {
            self.search_buffer.0.shrink_to(BUFFER_KEPT);
        }
        more
    }

    pub(super) fn save_watches(&self, watches: &[Watch]) {
        let bytes = serde_json::to_vec(watches).unwrap_or_default();
        let _ = replace(&self.inherited.job, layout::WATCHES, &bytes, Durability::Process);
    }
}
