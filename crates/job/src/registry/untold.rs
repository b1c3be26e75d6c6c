//! Ends that nobody could tell: keeper and heir are dead. The first process that finds such a job tells its end, while it
//! holds the job's lock, so that it is told once.

use rustix::fs::{AtFlags, unlinkat};

use super::claim::Lock;
use super::layout;
use super::replace::read_small;
use super::{Home, JobDir};
use crate::lifecycle::State;
use crate::outbox::{Entry, Outbox};
use crate::registry::format::Info;
use crate::wakes::spool::{Order, Spool};
use crate::wakes::{Standing, Wake};
use crate::wire::event::{EntryKind, EventKind};

impl JobDir {
    /// Tells an end, unless the session knows it. The caller holds the job's lock.
    pub(super) fn tell_end(&self, info: &Info) {
        if !info.tells_end {
            return;
        }
        let Some(home) = self.path.ancestors().nth(2).and_then(|home| Home::open(home).ok()) else { return };
        let Ok(outbox) = Outbox::open(&home, &info.session) else { return };
        if outbox.entries(0).iter().any(|entry| entry.job == self.handle && entry.event == EntryKind::Exit) {
            return;
        }
        let text = match info.state.receipt() {
            Some(receipt) => {
                let how = receipt.words().unwrap_or_else(|error| error.message.clone());
                format!("{}: {how}", info.state.name())
            }
            None => {
                let why = info.state.why_lost().unwrap_or("it has no receipt");
                format!("{}: {why}", info.state.name())
            }
        };
        let mut entry = Entry::about(self.handle, info.name.as_deref(), EntryKind::Exit, text);
        entry.seq = self.events().last().map_or(0, |event| event.seq) + 1;
        entry.more = format!("outlast read {} --tail 20", self.handle);
        entry.detail = Some(EventKind::Exit { state: info.state.clone() });
        // First the orders: neither can be lost without the other.
        let unfiled = self.file_orders(&home, info, &entry);
        let mut entries = vec![entry];
        entries.extend(unfiled);
        let _ = outbox.append(&mut entries);
    }

    /// Writes orders to wake somebody for an entry; returns what is to be told of those that could not be written.
    fn file_orders(&self, home: &Home, info: &Info, entry: &Entry) -> Vec<Entry> {
        let bytes = read_small(self, layout::WAKES, 1 << 20).unwrap_or_default();
        let Ok(standing) = serde_json::from_slice::<Standing>(&bytes) else { return Vec::new() };
        let Ok(spool) = Spool::open(home) else { return Vec::new() };
        // The process that looked before may have been killed between the orders and the entry.
        let ids = spool.ids().into_iter().filter(|id| id.job == self.handle);
        let filed: Vec<Order> = ids.filter_map(|id| Some(spool.get(id)?.order)).collect();
        let is_filed = |wake: &Wake| {
            let of_end = |order: &&Order| order.events.iter().any(|other| other.event == EntryKind::Exit);
            filed.iter().filter(of_end).any(|order| order.wake == *wake)
        };
        let wakes = standing.wakes.into_iter().filter(|wake| wake.wants(entry) && !is_filed(wake));
        let unfiled = wakes.filter_map(|wake| {
            let order = Order::new(&info.session, wake, vec![entry.clone()]);
            let error = spool.add(self.handle, &order).err()?;
            let text = format!("{} {:?} could not be noted: {error}", order.wake.kind(), order.wake.target());
            let mut word = Entry::about(self.handle, info.name.as_deref(), EntryKind::WakeFailed, text);
            word.more = "outlast wakes list".into();
            Some(word)
        });
        unfiled.collect()
    }

    /// Tells the end of a job whose keeper and heir have written it down and died before they could tell it: they have
    /// left their socket.
    pub(crate) fn tell_if_cut_short(&self, info: &Info) {
        let left =
            rustix::fs::accessat(&self.dir, layout::SOCKET, rustix::fs::Access::EXISTS, AtFlags::empty());
        if left.is_err() || matches!(info.state, State::Lost { .. }) {
            return;
        }
        if let Ok(Some(_held)) = Lock::take(self) {
            self.tell_end(info);
            let _ = unlinkat(&self.dir, layout::SOCKET, AtFlags::empty());
        }
    }
}
