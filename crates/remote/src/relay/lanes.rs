//! Threads for requests that may take a while. What is about one job is done in order, in a lane of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many requests are carried out at once.
const MAX_THREADS: usize = 32;

type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    lanes: BTreeMap<u64, VecDeque<Task>>,
    /// Lanes that no thread is at, in turn.
    waiting: VecDeque<u64>,
    threads: usize,
    idle: usize,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(lane) = state.waiting.pop_front() {
                let Some(task) = state.lanes.get_mut(&lane).and_then(VecDeque::pop_front) else { continue };
                drop(state);
                task();
                state = self.lock();
                match state.lanes.get(&lane) {
                    Some(tasks) if !tasks.is_empty() => state.waiting.push_back(lane),
                    _ => drop(state.lanes.remove(&lane)),
                }
                self.changed.notify_all();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

/// The lanes.
#[derive(Default)]
pub(super) struct Lanes {
    shared: Arc<Shared>,
}

impl Lanes {
    /// Carries a task out after all that were put into the same lane before.
    pub(super) fn put(&self, lane: u64, task: Task) {
        let mut state = self.shared.lock();
        let is_new = !state.lanes.contains_key(&lane);
        state.lanes.entry(lane).or_default().push_back(task);
        if is_new {
            state.waiting.push_back(lane);
        }
        if state.idle < state.waiting.len() && state.threads < MAX_THREADS {
            let shared = Arc::clone(&self.shared);
            let spawned = std::thread::Builder::new().name("lane".into()).spawn(move || shared.work());
            state.threads += usize::from(spawned.is_ok());
        }
        self.shared.changed.notify_all();
    }

    /// Waits until everything is done, but not longer than this.
    pub(super) fn finish(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut state = self.shared.lock();
        while !state.lanes.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.closed = true;
        drop(state);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_one_lane_is_done_in_order_and_others_do_not_wait() {
        let lanes = Lanes::default();
        let done = Arc::<Mutex<Vec<u32>>>::default();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        lanes.put(1, Box::new(move || gate.recv().unwrap()));
        for i in 0..100 {
            let done = Arc::clone(&done);
            lanes.put(1, Box::new(move || done.lock().unwrap().push(i)));
        }
        let (tell, told) = std::sync::mpsc::channel();
        lanes.put(2, Box::new(move || tell.send(()).unwrap()));
        told.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(done.lock().unwrap().is_empty());
        go.send(()).unwrap();
        lanes.finish(Duration::from_secs(30));
        assert_eq!(*done.lock().unwrap(), (0..100).collect::<Vec<u32>>());
    }
}
