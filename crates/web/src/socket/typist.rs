//! Keys from the page, in order: one piece is typed before the next.

use outlast_job::wire::{INPUT_PIECE, Send, base64};
use outlast_job::{Failure, Kind};
use outlast_policy::OrderKind;
use tokio::sync::mpsc;

use super::{Out, refused, send};
use crate::api::{Desk, SESSION, allowed};
use crate::rights::Visitor;

/// How many pieces wait while a program does not read.
const QUEUE: usize = 64;

/// What types for a page.
pub(super) struct Typist {
    keys: mpsc::Sender<(String, String)>,
    out: Out,
}

impl Typist {
    pub(super) fn new(desk: &Desk, visitor: &Visitor, out: Out) -> Self {
        let (keys, mut queue) = mpsc::channel::<(String, String)>(QUEUE);
        let (desk, visitor, told) = (desk.clone(), visitor.clone(), out.clone());
        tokio::spawn(async move {
            while let Some((job, mut data)) = queue.recv().await {
                // What was typed meanwhile goes along.
                while data.len() < INPUT_PIECE / 2
                    && let Ok((next, more)) = queue.try_recv()
                {
                    if next == job {
                        data.push_str(&more);
                    } else {
                        press(&desk, &visitor, (job.clone(), std::mem::take(&mut data)), &told).await;
                        press(&desk, &visitor, (next, more), &told).await;
                    }
                }
                press(&desk, &visitor, (job, data), &told).await;
            }
        });
        Self { keys, out }
    }

    /// Types, or says that there is no room.
    pub(super) async fn press(&self, job: String, data: String) {
        if self.keys.try_send((job.clone(), data)).is_err() {
            let failure =
                Failure::new(Kind::Denied, "the program does not read what is typed; this was not typed");
            send(&self.out, &refused(&job, &failure)).await;
        }
    }
}

async fn press(desk: &Desk, visitor: &Visitor, (job, data): (String, String), out: &Out) {
    let Visitor::Owner { holder, .. } = visitor else { return };
    if data.is_empty() {
        return;
    }
    let (desk, visitor, holder, name) = (desk.clone(), visitor.clone(), holder.clone(), job.clone());
    let typed = tokio::task::spawn_blocking(move || -> Result<(), Failure> {
        // A person in front of a terminal, as with `outlast attach`.
        allowed(desk.outlast.home(), OrderKind::Attach { read_only: false })?;
        let job = desk.job(&visitor, &name)?;
        for piece in data.as_bytes().chunks(INPUT_PIECE) {
            let (session, holder) = (Some(SESSION.to_owned()), Some(holder.clone()));
            job.send(&Send { bytes: base64::encode(piece), session, holder, ..Send::default() }, None)?;
        }
        Ok(())
    });
    if let Ok(Err(failure)) = typed.await {
        send(out, &refused(&job, &failure)).await;
    }
}
