//! Programs of the job that stand still until a person has agreed to what they want to execute.
//!
//! The guard asks, a client answers. No answer in time is a no. A wait for the job to ask for something ends, as
//! if it waited for input.
//!
//! A host that the proxy refused can be allowed by an answer too; nothing stands still for that.

use std::time::{Duration, Instant};

use super::{Client, Core, Effect, Effects, Now};
use crate::clock::earliest;
use crate::failure::Failure;
use crate::keeper::proxy::{Refused, Why};
use crate::registry::replace::Durability;
use crate::wire::event::{EventKind, ExecQuestion, HostRefused};
use crate::wire::{Answer, Awaiting, AwaitingKind, Evidence, Level};
use outlast_protocol::Hint;
use outlast_rules::exec::ANSWER_WITHIN_MS;

/// More hosts than this are not asked about at once.
const MAX_QUESTIONS: usize = 32;

/// What is asked now, the oldest first.
#[derive(Debug, Default)]
pub(super) struct ExecQuestions {
    asked: Vec<(Instant, ExecQuestion)>,
    /// The oldest, as what the job waits for.
    awaiting: Option<Awaiting>,
}

impl ExecQuestions {
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.asked.len()
    }

    /// The oldest, as what the job waits for.
    pub(super) fn awaiting(&self) -> Option<&Awaiting> {
        self.awaiting.as_ref()
    }

    pub(super) fn all(&self) -> Vec<ExecQuestion> {
        self.asked.iter().map(|(_, question)| question.clone()).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.asked.iter().fold(None, |next, (until, _)| earliest(next, Some(*until)))
    }

    fn take(&mut self, number: u64) -> Option<ExecQuestion> {
        let at = self.asked.iter().position(|(_, question)| question.question == number)?;
        let (_, taken) = self.asked.remove(at);
        let first = self.asked.iter().find(|(_, question)| question.host.is_none());
        self.awaiting = first.map(|(_, question)| awaiting(question));
        Some(taken)
    }
}

impl Core {
    /// What the job waits for, if it does: first of all for a person who agrees.
    pub(super) fn awaiting_now(&self) -> Option<&Awaiting> {
        self.questions.awaiting().or(self.awaiting.as_ref())
    }

    pub(super) fn on_exec_asked(&mut self, mut question: ExecQuestion, now: Now, effects: &mut Effects) {
        question.command = self.hide(&question.command);
        let until = now.at + Duration::from_millis(question.until.saturating_sub(now.unix_ms));
        self.questions.asked.push((until, question.clone()));
        self.questions.awaiting.get_or_insert_with(|| awaiting(&question));
        self.event(EventKind::Asking { question: Box::new(question) }, now, effects);
        self.show_awaiting(now, effects);
    }

    pub(super) fn on_exec_withdrawn(&mut self, number: u64, now: Now, effects: &mut Effects) {
        if self.questions.take(number).is_some() {
            let by = "nobody: the process is gone".to_owned();
            self.event(EventKind::Answered { question: number, allowed: false, by }, now, effects);
        }
    }

    pub(super) fn on_exec_answer(
        &mut self,
        client: Client,
        (question, allow): (u64, bool),
        by: &str,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(taken) = self.questions.take(question) else {
            let failure = Failure::usage(format!("question {question} is not asked, or not any more"))
                .hint(Hint::text("see what is asked: outlast policy pending"));
            return effects.reply(client, Answer::Error(failure.into()));
        };
        self.answer_exec(&taken, allow, by.to_owned(), now, effects);
        effects.reply(client, Answer::Done {});
    }

    /// No answer in time is a no.
    pub(super) fn expire_questions(&mut self, now: Now, effects: &mut Effects) {
        let is_late = |(until, _): &&(Instant, ExecQuestion)| *until <= now.at;
        while let Some((_, question)) = self.questions.asked.iter().find(is_late) {
            let Some(taken) = self.questions.take(question.question) else { return };
            self.answer_exec(&taken, false, "nobody in time".into(), now, effects);
        }
    }

    fn answer_exec(
        &mut self,
        asked: &ExecQuestion,
        allowed: bool,
        by: String,
        now: Now,
        effects: &mut Effects,
    ) {
        let question = asked.question;
        match &asked.host {
            None => effects.push(Effect::AnswerExec { question, allow: allowed }),
            Some(host) if allowed => {
                self.record.allow_host(host.clone());
                effects.push(Effect::WriteRecord(Durability::Process));
                effects.push(Effect::AllowHost(host.clone()));
            }
            Some(_) => {}
        }
        self.event(EventKind::Answered { question, allowed, by }, now, effects);
    }
}

impl Core {
    /// The proxy did not connect the job to a host.
    pub(super) fn on_host_refused(&mut self, refused: Refused, now: Now, effects: &mut Effects) {
        match refused.why {
            Why::Private(address) => {
                let why = format!("{address} is an address of this machine or its network");
                let Refused { host, port, .. } = refused;
                let refused = Box::new(HostRefused { host, port, why, question: None });
                self.event(EventKind::HostRefused { refused }, now, effects);
            }
            Why::NotAllowed => {
                let host = host_of(&refused);
                let is_asked =
                    self.questions.asked.iter().any(|(_, asked)| asked.host.as_ref() == Some(&host));
                if !is_asked && self.questions.asked.len() < MAX_QUESTIONS {
                    effects.push(Effect::NumberQuestion(refused));
                }
            }
        }
    }

    /// A person can allow a host that was refused.
    pub(super) fn on_host_asked(&mut self, refused: &Refused, number: u64, now: Now, effects: &mut Effects) {
        let host = host_of(refused);
        let why = "it is none of the hosts that the job may connect to".to_owned();
        let question = ExecQuestion {
            question: number,
            pid: 0,
            command: format!("connect to {host}"),
            rule: "network = \"hosts\"".into(),
            place: "the sandbox of the job".into(),
            why: None,
            until: now.unix_ms + ANSWER_WITHIN_MS,
            host: Some(host),
        };
        self.questions.asked.push((now.at + Duration::from_millis(ANSWER_WITHIN_MS), question));
        let Refused { host, port, .. } = refused.clone();
        let refused = Box::new(HostRefused { host, port, why, question: Some(number) });
        self.event(EventKind::HostRefused { refused }, now, effects);
    }
}

/// A host as it can be allowed.
fn host_of(refused: &Refused) -> String {
    let Refused { host, port, .. } = refused;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// A question as what the job waits for.
fn awaiting(question: &ExecQuestion) -> Awaiting {
    let why = question.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Awaiting {
        level: Level::Certain,
        kind: AwaitingKind::Approval,
        prompt: format!("may it execute: {}", question.command),
        evidence: Evidence {
            pid: question.pid,
            program: question.command.split(' ').next().unwrap_or_default().to_owned(),
            syscall: "execve".into(),
            fd: None,
            why: format!("the rule \"{}\" asks for a person ({}){why}", question.rule, question.place),
        },
    }
}
