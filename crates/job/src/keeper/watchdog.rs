//! The last resort where the kernel can't tell whether a job waits: a long silence, and a line that looks
//! like a question. It never says more than "possible".

use std::time::Duration;

use outlast_pty::evidence::{Verdict, text};
use regex_automata::meta::Regex;

use crate::settings;
use crate::wire::{Awaiting, AwaitingKind, Evidence, Level};

/// The rule with its patterns compiled.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    after: Duration,
    prompts: Vec<Regex>,
    not_prompts: Vec<Regex>,
}

impl Watchdog {
    pub(super) fn new(settings: &settings::Watchdog) -> Self {
        // They were checked when the settings were read.
        let compile = |patterns: &[String]| patterns.iter().filter_map(|p| Regex::new(p).ok()).collect();
        Self {
            after: settings.after,
            prompts: compile(&settings.prompts),
            not_prompts: compile(&settings.not_prompts),
        }
    }

    /// How long a silence must be.
    pub(super) fn after(&self) -> Duration {
        self.after
    }

    /// What it makes of a silence. The built-in patterns count only where the kernel said nothing: a busy
    /// program that printed a question is busy. A pattern of the user's own counts always.
    pub(super) fn judge(&self, line: &str, silent: Duration, verdict: &Verdict) -> Option<Awaiting> {
        if silent < self.after || self.not_prompts.iter().any(|pattern| pattern.is_match(line)) {
            return None;
        }
        let known = *verdict == Verdict::Unknown && text::looks_like_question(line);
        if !known && !self.prompts.iter().any(|pattern| pattern.is_match(line)) {
            return None;
        }
        let seconds = self.after.as_secs();
        Some(Awaiting {
            level: Level::Possible,
            kind: AwaitingKind::Line,
            prompt: line.trim().to_owned(),
            evidence: Evidence {
                why: format!("nothing was printed for {seconds} s, and the last line looks like a question"),
                ..Evidence::default()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(46);

    fn asks(watchdog: &Watchdog, line: &str, verdict: &Verdict) -> bool {
        watchdog.judge(line, LONG, verdict).is_some()
    }

    #[test]
    fn the_kernel_is_believed_before_the_text() {
        let watchdog = Watchdog::new(&settings::Watchdog::default());
        assert!(asks(&watchdog, "Continue? (y/n) ", &Verdict::Unknown));
        assert!(asks(&watchdog, "Password: ", &Verdict::Unknown));
        assert!(!asks(&watchdog, "Continue? (y/n) ", &Verdict::Busy));
        assert!(watchdog.judge("Continue? (y/n) ", Duration::from_secs(44), &Verdict::Unknown).is_none());
    }

    #[test]
    fn false_friends_are_known_and_more_can_be_named() {
        let settings = settings::Watchdog {
            prompts: vec!["^weiter\\?".into()],
            not_prompts: vec!["^note:".into()],
            ..settings::Watchdog::default()
        };
        let watchdog = Watchdog::new(&settings);
        assert!(!asks(&watchdog, "press h + enter to show help", &Verdict::Unknown));
        assert!(!asks(&watchdog, "collecting ... ", &Verdict::Unknown));
        assert!(asks(&watchdog, "weiter?", &Verdict::Busy));
        assert!(!asks(&watchdog, "note: press Enter later", &Verdict::Unknown));
    }
}
