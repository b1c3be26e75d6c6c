//! What a core can have done, and the effects that are decided on and not carried out yet.

use std::collections::VecDeque;
use std::time::Instant;

use outlast_protocol::shell::StepOrder;
use outlast_pty::evidence::Verdict;
use outlast_pty::reap::End;
use rustix::process::{Pid, Signal};

use super::{Answer, Client, HiddenInput, Probe};
use crate::keeper::peers::PeerId;
use crate::keeper::proxy::Refused;
use crate::outbox::Entry;
use crate::registry::replace::Durability;
use crate::spec::Size;
use crate::wire::event::Event;
use crate::wire::watch::Watch;

/// Everything that a core can have done.
#[derive(Debug)]
pub(in crate::keeper) enum Effect {
    /// Answers a request.
    Reply { client: Client, answer: Answer },
    /// Shows a person who is attached the screen anew.
    Repaint { client: Client, answer: Answer },
    /// From now on this client is told of growth and events.
    Follow(PeerId),
    /// Listens to a client no more for now, or again.
    Hold { peer: PeerId, held: bool },
    /// Writes an event down, and tells followers.
    Event(Box<Event>),
    /// Writes the text that waits to a transcript.
    WriteTranscript { channel: usize },
    /// Notes for the heir how far an output has come.
    NoteProgress { channel: usize },
    /// Writes the last screen.
    WriteScreen(String),
    /// Gives the program what is typed, as far as it takes it.
    WriteInput,
    /// Reads the modes of the terminal.
    ReadLineModes,
    /// Ends the input of a job on pipes.
    CloseInput,
    /// Hides a secret everywhere.
    LearnSecret(HiddenInput),
    /// Gives the terminal a size.
    SetSize { size: Size, before: Size, client: Option<Client> },
    /// Sends signals to every process of the job, and counts who got the first if that is wanted.
    SignalAll { signals: &'static [Signal], counts: bool },
    /// Sends one signal to every process of the job, for somebody.
    Signal { signal: Signal, client: Client },
    /// Looks whether anything is left of the job, and lists what is if that is wanted.
    Survey { lists: bool },
    /// Lists the processes of the job.
    ListProcesses(Client),
    /// Writes the record.
    WriteRecord(Durability),
    /// Gives the disk space back that was reserved for the end.
    GiveReserveBack,
    /// Marks the job as one whose end no record says, or no longer.
    MarkEndUnsaved(bool),
    /// Leaves the end to the heir, in memory that both share.
    RememberEnd { end: End, at_ms: u64 },
    /// Leaves to the heir until when the job may take to end by itself; none when nobody ends it any more.
    RememberGrace(Option<Instant>),
    /// Looks whether the job's folder is still there.
    CheckFolder,
    /// Lets the kernel forget the command.
    Reap(Pid),
    /// Lets patterns see all that the command printed.
    SearchAll,
    /// Gives a shell its next command.
    FeedStep { step: u64, order: Box<StepOrder> },
    /// Lets the person at a shell's terminal type its next command, which will be this step.
    ShowPrompt(u64),
    /// Lets patterns see all that a step printed.
    SearchStep(u64),
    /// Asks a shell what it remembers.
    CaptureShell,
    /// Calls a shell back from its prompt: what was typed there is dropped.
    LeavePrompt,
    /// Looks whether a shell that reads from its terminal does so at its own prompt, where no step runs.
    LookForLostShell(Box<Verdict>),
    /// Interrupts what has a shell's terminal.
    InterruptForeground,
    /// Signals what a step has started since then, in milliseconds since 1970.
    SignalStep { signals: &'static [Signal], since: u64 },
    /// Writes watches down.
    SaveWatches(Vec<Watch>),
    /// Gives memory back that only patterns needed.
    GiveMemoryBack,
    /// Lets a program execute what it asked for, or not.
    AnswerExec { question: u64, allow: bool },
    /// Find a number for a question about a host.
    NumberQuestion(Refused),
    /// Connect the job to a host from now on.
    AllowHost(String),
    /// Probes the job.
    Probe(Box<Probe>),
    /// No probes are wanted for now.
    StopProbes,
    /// Looks whether all that was typed has been read.
    CheckInputRead,
    /// Looks how often a process has run.
    CountRuns(Pid),
    /// Writes entries to the outbox.
    AppendOutbox(Vec<Entry>),
    /// Syncs the outbox to the disk.
    SyncOutbox,
    /// Delivers wakes: those in the spool, and these.
    Wake(Vec<Entry>),
}

/// What is to be done, in order. The buffer is used again and again.
#[derive(Debug, Default)]
pub(in crate::keeper) struct Effects {
    queue: VecDeque<Effect>,
}

impl Effects {
    pub(in crate::keeper) fn push(&mut self, effect: Effect) {
        self.queue.push_back(effect);
    }

    pub(in crate::keeper) fn next(&mut self) -> Option<Effect> {
        self.queue.pop_front()
    }

    pub(super) fn reply(&mut self, client: Client, answer: Answer) {
        self.push(Effect::Reply { client, answer });
    }
}
