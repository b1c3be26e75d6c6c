//! Programs of the job that stand still until a person has agreed to what they want to execute.
//!
//! The guard asks, a client answers. No answer in time is a no. Whoever waits for the job to ask for something is told, as
//! if it waited for input.

use std::time::{Duration, Instant};

use super::{Client, Core, Effect, Effects, Now};
use crate::clock::earliest;
use crate::failure::Failure;
use crate::wire::event::{EventKind, ExecQuestion};
use crate::wire::{Answer, Awaiting, AwaitingKind, Evidence, Level};
use outlast_protocol::Hint;

/// What is asked now, the oldest first.
#[derive(Debug, Default)]
pub(super) struct ExecQuestions {
    asked: Vec<(Instant, ExecQuestion)>,
    /// The oldest, as what the job waits for.
    awaiting: Option<Awaiting>,
}

impl ExecQuestions {
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

    fn take(&mut self, number: u64) -> bool {
        let before = self.asked.len();
        self.asked.retain(|(_, question)| question.question != number);
        self.awaiting = self.asked.first().map(|(_, question)| awaiting(question));
        self.asked.len() < before
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
        if self.questions.take(number) {
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
        if !self.questions.take(question) {
            let failure = Failure::usage(format!("question {question} is not asked, or not any more"))
                .hint(Hint::text("see what is asked: outlast policy pending"));
            return effects.reply(client, Answer::Error(failure.into()));
        }
        self.answer_exec(question, allow, by.to_owned(), now, effects);
        effects.reply(client, Answer::Done {});
    }

    /// No answer in time is a no.
    pub(super) fn expire_questions(&mut self, now: Now, effects: &mut Effects) {
        let is_late = |(until, _): &&(Instant, ExecQuestion)| *until <= now.at;
        while let Some((_, question)) = self.questions.asked.iter().find(is_late) {
            let number = question.question;
            self.questions.take(number);
            self.answer_exec(number, false, "nobody in time".into(), now, effects);
        }
    }

    fn answer_exec(&mut self, question: u64, allowed: bool, by: String, now: Now, effects: &mut Effects) {
        effects.push(Effect::AnswerExec { question, allow: allowed });
        self.event(EventKind::Answered { question, allowed, by }, now, effects);
    }
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
