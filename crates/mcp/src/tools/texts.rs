//! What the seven tools say of themselves. A model reads all of it in every conversation: each word costs.

use outlast_job::condition::CONDITIONS;

use super::{Answers, Definition, Effect, Field};
use crate::engine::wait::WaitOutput;
use crate::profiles::plain;

/// How the conditions that `wait_for` knows are written.
fn conditions() -> String {
    let rows: Vec<String> = CONDITIONS.iter().map(outlast_job::condition::ConditionWord::usage).collect();
    rows.join(", ")
}

fn handle() -> Field {
    Field::text("handle", "Job number or name")
}

fn max_output_size() -> Field {
    Field::integer("max_output_size", "Bytes, default 16384")
}

/// The seven, in the order in which they are learned.
pub(crate) fn seven() -> Vec<Definition> {
    vec![run(), send(), read_shell(), read_output(), wait_for(), jobs(), kill()]
}

fn run() -> Definition {
    Definition {
        name: "run_shell_command",
        parse: plain::run,
        title: "Run a command",
        description: "Run a bash command line as a job in a terminal. Returns as soon as it exits, prints \
            ai_callback_pattern, awaits input or opens a port, at the latest after ai_callback_delay \
            seconds; then it goes on in the background under its handle, also when this server or you \
            restart. So nothing needs `&`, nohup or a guess: run servers, REPLs, installers and debuggers \
            the same way, and go on with @send_input, @wait_for, @read_output or @kill. Still running is not an \
            error. Long builds: raise ai_callback_delay, or @wait_for. Answers begin with our words; lines \
            after > and all after a blank line are the job's own.",
        effect: Effect::Acts,
        answers: Answers::Job,
        fields: vec![
            Field::text("command", "").required(),
            Field::text("description", "What it is for"),
            Field::text("dir_path", "Folder; default: the server's"),
            Field::text("host", "Another machine"),
            Field::pairs("env", ""),
            Field::text(
                "shell",
                "Run it as a step in this lasting shell, e.g. main: cd, export, source stay",
            ),
            Field::text("name", "To use as a handle, e.g. dev"),
            Field::text(
                "slot",
                "Wait in line for a place, so that heavy builds run a few at a time, e.g. build",
            ),
            Field::texts("after", "Run it once these jobs have succeeded"),
            Field::flag("pty", "Default true; false: pipes, stderr apart"),
            Field::flag("is_background", "Return at once"),
            Field::number("ai_callback_delay", "Seconds, default 5"),
            Field::text(
                "ai_callback_pattern",
                "Regex in its output; waits pattern_timeout instead of the delay",
            ),
            Field::number("pattern_timeout", "Default 30"),
            max_output_size(),
            Field::number("kill_after", "Seconds it may run; default: no limit"),
            Field::number("kill_after_quiet", "Seconds it may print nothing"),
            Field::texts(
                "notify",
                "What to tell of later, as until of wait_for; default exit, awaiting_input",
            ),
            Field::flag("again", "Start it although the same runs already"),
        ],
        also: &[
            "rc",
            "with",
            "if_idle",
            "wait_for_output_seconds",
            "stream_output",
            "timeout",
            "inactivity_timeout",
        ],
    }
}

fn send() -> Definition {
    Definition {
        name: "send_input",
        parse: plain::send,
        title: "Type into a job",
        description: "Type into a running job; returns what it printed after that as soon as it asks again, \
            exits or matches, at the latest after ai_callback_delay. Several lines are typed as the program \
            takes them. A full-screen program answers with the rows of its screen that changed; »…« is \
            selected. Example: {\"handle\": \"3\", \"input\": \"print(2+2)\"}",
        effect: Effect::Acts,
        answers: Answers::Job,
        fields: vec![
            handle().required(),
            Field::text("input", ""),
            Field::flag("append_newline", "Enter after input; default true, but false with special_keys"),
            Field::flag("paste", "Several lines: true as one paste, false one by one; default as suits"),
            Field::texts(
                "special_keys",
                "After input: Enter Tab Up Down Left Right Escape Backspace Space Delete Home End PageUp \
                 PageDown F1-F12 Ctrl-C Alt-x ...",
            ),
            Field::flag("eof", "Then end its input"),
            Field::number("ai_callback_delay", "Seconds, default 3"),
            Field::text("ai_callback_pattern", "Regex in what comes after"),
            Field::number("pattern_timeout", "Default 30"),
            max_output_size(),
        ],
        also: &["pid"],
    }
}

fn read_shell() -> Definition {
    Definition {
        name: "read_shell",
        parse: plain::read_shell,
        title: "Look at a job's screen",
        description: "A job's whole screen now, for full-screen programs: rows with numbers, cursor, what is \
            selected.",
        effect: Effect::Reads,
        answers: Answers::Job,
        fields: vec![handle().required(), Field::integer("scrollback", "Lines above it")],
        also: &["lines", "pid", "max_output_size"],
    }
}

fn read_output() -> Definition {
    Definition {
        name: "read_output",
        parse: plain::read_output,
        title: "Read a job's output",
        description: "What a job printed, as plain text. Without options: what is new since the last answer \
            about it. Never waits.",
        effect: Effect::Reads,
        answers: Answers::Job,
        fields: vec![
            handle().required(),
            Field::integer("offset", "From this byte; 0 for all"),
            Field::integer("until", "Up to this byte"),
            Field::integer("head", "First lines"),
            Field::integer("tail", "Last lines"),
            Field::text("pattern", "Regex: only lines that match, numbered"),
            Field::flag("raw", "With escapes"),
            Field::flag("stderr", "Of a job with pty=false"),
            max_output_size(),
        ],
        also: &["pid"],
    }
}

fn wait_for() -> Definition {
    Definition {
        name: "wait_for",
        parse: plain::wait_for,
        title: "Wait for a job",
        description: "Wait without polling; returns the moment one condition holds or the job exits. \
            Default: until it exits or awaits input. Several handles: the first wins.",
        effect: Effect::Reads,
        answers: Answers::Job,
        fields: vec![
            handle(),
            Field::texts("handles", ""),
            Field::texts("until", "Any of these").items(conditions()),
            Field::text("pattern", "Regex in output not shown yet"),
            Field::number("timeout", "Seconds; default: as long as a call may take"),
            Field::integer("offset", "Look for pattern from this byte"),
            Field::choice(
                "output",
                &WaitOutput::NAMED.map(|(name, _)| name),
                "Of its output; default new, tail is 10 lines",
            ),
            max_output_size(),
        ],
        also: &["quiet_seconds", "stable_checks", "port"],
    }
}

fn jobs() -> Definition {
    Definition {
        name: "jobs",
        parse: plain::jobs,
        title: "List jobs",
        description: "What happened since you were last told, then this session's jobs, those that need \
            attention first. For when you have lost track.",
        effect: Effect::Reads,
        answers: Answers::List,
        fields: vec![
            Field::flag("all", "Also of other sessions"),
            Field::flag("running", "Only running ones"),
            Field::integer("before", "Only older than this handle"),
            Field::flag("adopt", "Take over what earlier conversations here left"),
        ],
        also: &[],
    }
}

fn kill() -> Definition {
    Definition {
        name: "kill",
        parse: plain::kill,
        title: "End a job",
        description: "End a job and all it started: SIGTERM, then SIGKILL. To interrupt a command in a \
            shell or REPL, @send_input with Ctrl-C instead.",
        effect: Effect::Ends,
        answers: Answers::Job,
        fields: vec![
            handle().required(),
            Field::text("signal", "Send only this, e.g. HUP"),
            Field::number("grace_seconds", "Default 0.2"),
        ],
        also: &["pid", "max_output_size"],
    }
}
