//! What the seven tools say of themselves. A model reads all of it in every conversation: each word costs.

use outlast_job::condition::CONDITIONS;

use super::{Definition, Effect, Field};
use crate::profiles::plain;

/// How the conditions that `wait_for` knows are written, and when they hold.
fn conditions() -> String {
    let rows: Vec<String> = CONDITIONS.iter().map(|row| format!("{}: {}", row.usage(), row.help)).collect();
    rows.join("; ")
}

fn handle() -> Field {
    Field::text("handle", "Job number or name, e.g. \"3\"")
}

fn max_output_size() -> Field {
    Field::integer(
        "max_output_size",
        "Bytes of answer, default 16384; the middle is left out, with the call that reads it",
    )
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
            ai_callback_pattern, waits for input, or opens a port, at the latest after ai_callback_delay \
            seconds; then it goes on in the background under its handle, also when this server or you \
            restart. So nothing needs `&`, nohup or a guess: run servers, REPLs, installers and debuggers \
            the same way and use the handle with send_input, wait_for, read_output and kill. `reason` says \
            why the call returned: exit (see exit_code), pattern, awaiting_input (answer with send_input), \
            port, or deadline (still running; not an error). Long builds: raise ai_callback_delay or call \
            wait_for. Example: {\"command\": \"npm run dev\", \"name\": \"dev\", \"ai_callback_pattern\": \
            \"ready in\"}",
        effect: Effect::Acts,
        fields: vec![
            Field::text("command", "Command line for bash").required(),
            Field::text("description", "What it is for, shown by jobs"),
            Field::text("dir_path", "Folder to run in; default: the server's"),
            Field::pairs("env", "Variables to add"),
            Field::text("name", "Name to use as a handle, e.g. \"dev\""),
            Field::flag("pty", "Default true; false: pipes, stderr apart"),
            Field::flag("is_background", "Return at once (reason started)"),
            Field::number("ai_callback_delay", "Seconds to stay with it, default 5"),
            Field::text(
                "ai_callback_pattern",
                "Regex; return when the output matches. Waits up to pattern_timeout instead of the delay",
            ),
            Field::number("pattern_timeout", "Seconds, default 30"),
            Field::number("wait_for_output_seconds", "Same as ai_callback_delay"),
            max_output_size(),
            Field::number("timeout", "Kill it after so many seconds; default: never"),
            Field::number(
                "inactivity_timeout",
                "Kill it after so many seconds without output; default: never",
            ),
            Field::flag("stream_output", ""),
            Field::texts(
                "notify",
                "What to tell of later: exit, awaiting_input, port, pattern=REGEX, quiet=30s, stable; \
                 default exit, awaiting_input",
            ),
        ],
    }
}

fn send() -> Definition {
    Definition {
        name: "send_input",
        parse: plain::send,
        title: "Type into a job",
        description: "Type text and keys into a running job, then return what it printed after that, as \
            soon as it asks again, exits or matches ai_callback_pattern, at the latest after \
            ai_callback_delay. With a REPL, no pattern is needed. A full-screen program's screen comes back \
            instead of its output. Examples: {\"handle\": \"3\", \"input\": \"print(2+2)\"}; {\"handle\": \
            \"3\", \"special_keys\": [\"Ctrl-C\"]}",
        effect: Effect::Acts,
        fields: vec![
            handle().required(),
            Field::text("input", "Text to type, as it is"),
            Field::flag(
                "append_newline",
                "Press Enter after input; default true, but false with special_keys",
            ),
            Field::flag(
                "paste",
                "Several lines: true as one paste, false line by line; default as suits the program",
            ),
            Field::texts(
                "special_keys",
                "Pressed after input: Enter Tab Up Down Left Right Escape Backspace Space Delete Home End \
                 PageUp PageDown F1-F12 Ctrl-A..Ctrl-Z Alt-x",
            ),
            Field::flag("eof", "End its input after that (Ctrl-D)"),
            Field::number("ai_callback_delay", "Seconds, default 3"),
            Field::text("ai_callback_pattern", "Regex; return when what comes after the input matches"),
            Field::number("pattern_timeout", "Seconds, default 30"),
            max_output_size(),
        ],
    }
}

fn read_shell() -> Definition {
    Definition {
        name: "read_shell",
        parse: plain::read_shell,
        title: "Look at a job's screen",
        description: "What the job's terminal shows now: text, cursor, size, modes. For full-screen \
            programs (vim, top, menus, debuggers). For printed lines use read_output.",
        effect: Effect::Reads,
        fields: vec![
            handle().required(),
            Field::integer("scrollback", "Also so many lines above the screen; default 0"),
            max_output_size(),
        ],
    }
}

fn read_output() -> Definition {
    Definition {
        name: "read_output",
        parse: plain::read_output,
        title: "Read a job's output",
        description: "Read what a job printed, as plain text (no colours, redrawn lines once). Without \
            options: what is new since the last answer about this job, also after a restart. Or a part: \
            offset/until (bytes), head/tail (lines), pattern (lines that match, numbered). Never waits; use \
            wait_for for that. Example: {\"handle\": \"3\", \"pattern\": \"error|warning\"}",
        effect: Effect::Reads,
        fields: vec![
            handle().required(),
            Field::integer("offset", "From this byte of the log; 0 for all"),
            Field::integer("until", "Up to this byte"),
            Field::integer("head", "First lines"),
            Field::integer("tail", "Last lines"),
            Field::text("pattern", "Regex: only lines that match"),
            Field::flag("raw", "Bytes as they are, escapes shown"),
            Field::flag("stderr", "Of a job with pty=false"),
            max_output_size(),
        ],
    }
}

fn wait_for() -> Definition {
    Definition {
        name: "wait_for",
        parse: plain::wait_for,
        title: "Wait for a job",
        description: "Wait for a job without polling; returns the moment one condition holds, with the new \
            output. Default: until it exits or waits for input. Exit always ends it. reason deadline: the \
            time is up, call again. Several handles: the first wins. Example: {\"handle\": \"dev\", \
            \"pattern\": \"compiled|ERROR\", \"timeout\": 40}",
        effect: Effect::Reads,
        fields: vec![
            handle(),
            Field::texts("handles", "Several jobs"),
            Field::texts("until", "Conditions; pattern, port, quiet_seconds and stable_checks imply theirs, or give their values")
                .items(conditions()),
            Field::text("pattern", "Regex, in output not shown yet; with gone, on the screen"),
            Field::number("quiet_seconds", "Default 2"),
            Field::integer("stable_checks", "Checks 1 s apart, default 3"),
            Field::integer("port", "TCP port; 0 for any"),
            Field::number("timeout", "Seconds, default and most: 50"),
            Field::integer("offset", "Look for pattern from this byte; 0 for all output"),
            max_output_size(),
        ],
    }
}

fn jobs() -> Definition {
    Definition {
        name: "jobs",
        parse: plain::jobs,
        title: "List jobs",
        description: "What happened since you were last told (ended, asks, ...), then this session's jobs, \
            those that need attention first: state, age, last line, ports, what each is for, unread bytes. \
            Call it when you have lost track, e.g. after a restart or a summary of the conversation.",
        effect: Effect::Reads,
        fields: vec![Field::flag("all", "Also those of other sessions")],
    }
}

fn kill() -> Definition {
    Definition {
        name: "kill",
        parse: plain::kill,
        title: "End a job",
        description: "End a job and everything it started: SIGTERM, then SIGKILL after a grace. Already \
            ended is no error. With signal: send only that. To interrupt a command in a shell or REPL, \
            send_input with Ctrl-C instead.",
        effect: Effect::Ends,
        fields: vec![
            handle().required(),
            Field::text("signal", "e.g. INT, HUP, USR1"),
            Field::number("grace_seconds", "Default 0.2"),
        ],
    }
}
