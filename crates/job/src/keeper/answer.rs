//! Answers to clients' requests.

use std::time::{Duration, Instant};

use outlast_pty::procfs;
use rustix::process::getpid;

use super::masking;
use super::peers::PeerId;
use super::waits::Now;
use super::{Keeper, Life};
use crate::clock::millis;
use crate::failure::Failure;
use crate::lifecycle::{EndedBy, Process};
use crate::secrets;
use crate::spec::Size;
use crate::wire::glance::Glance;
use crate::wire::{Activity, Answer, Cursor, Request, ScreenShot, Status, Verb};

/// Output this fresh means that a job is at work.
const FRESH: Duration = Duration::from_secs(2);

impl Keeper {
    /// A client said something.
    pub(super) fn on_said(&mut self, peer: PeerId) {
        for line in self.peers.hear(peer) {
            match serde_json::from_slice::<Request>(&line) {
                Ok(request) => {
                    let answer = match self.peers.admit(peer, &request, self.info.handle) {
                        Ok(()) => self.answer(peer, request.id, request.verb),
                        Err(failure) => Some(Answer::Error(failure.into())),
                    };
                    if let Some(answer) = answer {
                        self.peers.reply(peer, request.id, answer);
                    }
                }
                Err(error) => {
                    let failure = Failure::usage(format!("that is no request: {error}"))
                        .hint(r#"for example: {"id":1,"verb":"status"}"#);
                    self.peers.reply(peer, 0, Answer::Error(failure.into()));
                }
            }
        }
    }

    /// The answer, unless it comes later.
    fn answer(&mut self, peer: PeerId, id: u64, verb: Verb) -> Option<Answer> {
        match verb {
            Verb::Status { brief: true } => Some(Answer::Glance(Box::new(self.glance()))),
            Verb::Status { brief: false } => Some(Answer::Status(Box::new(self.status()))),
            Verb::Follow => {
                self.peers.follow(peer);
                Some(Answer::Status(Box::new(self.status())))
            }
            Verb::Send(send) => self.on_send(peer, id, &send),
            Verb::Typed => Some(Answer::Typed(self.typing.typed())),
            Verb::Secret(secret) => Some(self.on_secret(peer, &secret)),
            Verb::Wait(wait) => {
                let answer = self.begin_wait(peer, id, wait);
                self.plan_look();
                answer
            }
            Verb::Cancel { wait } => {
                if self.waits.cancel(peer, wait) {
                    self.peers.disclaim(peer);
                }
                Some(Answer::Done {})
            }
            Verb::Signal { signal, session } => Some(self.on_signal_request(&signal, session)),
            Verb::Kill { grace_ms, session } => {
                let by = EndedBy::Kill { session, signal: "SIGTERM".into() };
                self.begin_ending(by, Duration::from_millis(grace_ms), Some((peer, id)));
                None
            }
            Verb::Resize { size } => Some(self.on_resize_request(size)),
            Verb::Attach(attach) => Some(self.on_attach(peer, id, &attach)),
            Verb::Watch { watch } => Some(self.on_watch(watch)),
            Verb::Watches => Some(Answer::Watches(self.watching.all())),
            Verb::Unwatch { watch } => Some(self.on_unwatch(&watch)),
            Verb::Screen { styled, scrollback, masked } => Some(self.screen(styled, scrollback, masked)),
        }
    }

    fn begin_wait(&mut self, peer: PeerId, id: u64, wait: crate::wire::Wait) -> Option<Answer> {
        let rows =
            if wait.stable.is_some() || !wait.gone.is_empty() { self.screen_rows() } else { Vec::new() };
        let now = Now {
            streams: self.info.streams,
            end: self.grown().offset,
            ended: self.life == Life::Ended,
            rows: &rows,
            awaiting: self.looking.awaiting.as_ref(),
            ports: &self.looking.ports,
            masks: &self.ground.masks,
        };
        self.waits.begin((peer, id), wait, &now)
    }

    /// The rows of the screen, without secrets.
    pub(super) fn screen_rows(&mut self) -> Vec<String> {
        let Some(channel) = self.channels.first_mut() else { return Vec::new() };
        let shot = channel.fold.screen();
        let mut rows = shot.rows;
        masking::hide_on_screen(&self.ground.masks, channel, &mut rows, shot.size.cols);
        rows
    }

    /// What is known without a look at anything: lists ask for it, of every job at once.
    fn glance(&self) -> Glance {
        Glance {
            grown: self.grown(),
            activity: self.activity(),
            log_failing: self.log_failing(),
            awaiting_input: self.looking.awaiting.clone(),
            ports: self.looking.ports.clone(),
            last_line: self.last_line(),
        }
    }

    fn activity(&self) -> Activity {
        let silent = self.last_output.elapsed();
        match self.life {
            Life::Ended => Activity::Ended,
            Life::Running { stopped: true, .. } => Activity::Stopped,
            Life::Running { .. } if self.looking.awaiting.is_some() => Activity::AwaitingInput,
            Life::Running { .. } if silent < FRESH => Activity::Working,
            Life::Running { .. } => Activity::Quiet { for_ms: millis(silent) },
        }
    }

    fn log_failing(&self) -> Option<String> {
        self.channels.iter().find_map(|c| c.log.failing()).map(|error| error.to_string())
    }

    fn status(&self) -> Status {
        Status {
            info: self.info.clone(),
            grown: self.grown(),
            activity: self.activity(),
            queued_input: self.typing.queued(),
            log_failing: self.log_failing(),
            awaiting_input: self.looking.awaiting.clone(),
            ports: self.looking.ports.clone(),
            sockets: self.looking.sockets.clone(),
            last_line: self.last_line(),
            processes: self.processes(),
        }
    }

    /// The unfinished line, or the last finished one if that is empty.
    pub(super) fn last_line(&self) -> String {
        self.channels.first().map(|channel| self.hide(&channel.fold.unfinished())).unwrap_or_default()
    }

    /// All living processes of the job, without those of jobs that were started from inside it.
    pub(super) fn processes(&self) -> Vec<Process> {
        self.members().into_iter().map(Process::from).collect()
    }

    /// As [`processes`](Self::processes), as the kernel tells them.
    pub(super) fn members(&self) -> Vec<procfs::Proc> {
        let processes = self.telling.without_helpers(procfs::descendants(getpid()));
        super::nested::without_nested_jobs(processes)
    }

    pub(super) fn on_resize(&mut self, size: Size) -> Answer {
        let size = match size.checked() {
            Ok(size) => size,
            Err(failure) => return Answer::Error(failure.into()),
        };
        let super::ground::Ends::Terminal { master, .. } = &self.ground.ends else {
            return Answer::Error(Failure::usage("this job runs on pipes and has no size").into());
        };
        // The engine first: what the program prints in its new size must meet a screen of that size.
        if let Some(channel) = self.channels.first_mut() {
            channel.resize(size);
        }
        let kernel_size = outlast_pty::Size::from(size);
        if let Err(error) = outlast_pty::open::resize(master, kernel_size) {
            return Answer::Error(Failure::system("the terminal can't be resized", error).into());
        }
        let since = Instant::now().saturating_duration_since(self.ground.started);
        let offset = self.grown().offset;
        self.timing.resized(since, offset, size);
        self.info.streams = crate::spec::Streams::Terminal(size);
        self.record_is_stale = true;
        Answer::Done {}
    }

    fn screen(&mut self, styled: bool, scrollback: usize, masked: bool) -> Answer {
        let offset = self.grown().offset;
        if !self.info.has_terminal() {
            return Answer::Error(
                Failure::usage("this job runs on pipes and has no screen")
                    .hint(format!("read what it printed: outlast read {}", self.info.handle))
                    .into(),
            );
        }
        let Some(channel) = self.channels.first_mut() else { return Answer::Done {} };
        let shot = channel.fold.screen();
        let mut rows = if styled { channel.fold.styled_screen() } else { shot.rows };
        let mut scrollback = if scrollback > 0 { channel.fold.scrollback(scrollback) } else { Vec::new() };
        let mut title = shot.title;
        if masked {
            let masks = &self.ground.masks;
            masking::hide_on_screen(masks, channel, &mut rows, shot.size.cols);
            let cols = usize::from(shot.size.cols);
            secrets::with(masks, |masks| {
                masks.rows(&mut scrollback, cols);
                title = masks.text(&title);
            });
        }
        Answer::Screen(Box::new(ScreenShot {
            size: Size { cols: shot.size.cols, rows: shot.size.rows },
            rows,
            scrollback,
            cursor: Cursor {
                row: narrow(shot.cursor.row),
                col: narrow(shot.cursor.col),
                visible: shot.cursor.visible,
            },
            title,
            alternate: shot.alternate,
            bracketed_paste: shot.modes.bracketed_paste,
            application_cursor: shot.modes.application_cursor,
            bells: shot.bells,
            offset,
        }))
    }
}

fn narrow(cell: usize) -> u16 {
    u16::try_from(cell).unwrap_or(u16::MAX)
}
