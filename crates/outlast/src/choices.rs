//! What a person has chosen for their own terminal: an option of the call, else a setting, else the default. Scripts,
//! agents and what runs inside a job have the defaults, whatever is set.

use outlast_job::settings::{AtTerminal, Section};
use outlast_job::{Failure, Outlast, Run};
use outlast_policy::Gate;
use outlast_protocol::{DetachKey, with_interpreter};

use crate::commands::is_an_agent;
use crate::output::Output;
use crate::terminal;

/// The key that leaves a job.
pub(crate) fn detach_key(outlast: &Outlast, chosen: Option<DetachKey>, out: &mut Output) -> DetachKey {
    chosen.unwrap_or_else(|| set(outlast, out).detach_key)
}

/// What a command line means: a line for a program that was chosen, else none.
///
/// # Errors
/// A line for another program is one argument.
pub(crate) fn interpreter(
    outlast: &Outlast,
    chosen: Option<&str>,
    command: &[String],
    out: &mut Output,
) -> Result<Option<Run>, Failure> {
    match (chosen, command) {
        (Some(chosen), [line]) => with_interpreter(chosen, line).map(Some),
        (Some(chosen), _) => {
            Err(Failure::usage(format!("--with has {chosen} read one line, and this is more"))
                .hint(format!("put it into quotes: outlast run --with {chosen} 'LINE'")))
        }
        (None, [line]) => set(outlast, out).shell.map(|shell| with_interpreter(&shell, line)).transpose(),
        (None, _) => Ok(None),
    }
}

/// The settings, for a person. A mistake among them is told, and stops nobody.
fn set(outlast: &Outlast, out: &mut Output) -> AtTerminal {
    if !terminal::is_a_person() || is_an_agent() || Gate::is_in_a_job() {
        return AtTerminal::default();
    }
    if let Err(failure) = outlast.loaded_settings().section(Section::Terminal) {
        out.talk(&format!("outlast: {}; the defaults of [terminal] are used", failure.message));
    }
    outlast.settings().terminal.clone()
}
