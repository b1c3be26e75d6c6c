//! Fish: an interactive shell that evaluates steps before it ever draws a prompt. An interrupt of its own loops ends one of
//! the commands that it was started with, and the next one goes on. Fish reads no descriptor that it has not opened itself, so what it is told comes
//! through a pipe; what it says goes over the socket.

use super::{Frame, Numbers, no_such_folder};

const DRIVER: &str = include_str!("fish.fish");
/// So many interrupts of loops of its own a shell survives; then it is made again.
const INTERRUPTS: usize = 200;

pub(super) fn start(rc: bool, numbers: Numbers) -> (Vec<String>, Vec<(String, String)>) {
    let mut argv = vec!["fish".to_owned()];
    if !rc {
        argv.push("--no-config".into());
    }
    argv.extend(["-i", "-C", "eval $__outlast_first"].map(str::to_owned));
    argv.extend(["-C", "__outlast"].repeat(INTERRUPTS).into_iter().map(str::to_owned));
    argv.extend(["-C", "exit 97"].map(str::to_owned));
    let first = format!("begin; read -z __outlast; end </proc/self/fd/{}; eval $__outlast", numbers.beside);
    (argv, vec![("__outlast_first".into(), first)])
}

pub(super) fn driver(Numbers { line, beside }: Numbers, state: Option<&str>) -> Vec<u8> {
    let state = match state.filter(|state| !state.is_empty()) {
        Some(state) => format!("eval {} >/dev/null 2>&1", escaped(state)),
        None => String::new(),
    };
    let driver = DRIVER.replace("@LINE@", &line.to_string()).replace("@FEED@", &beside.to_string());
    (driver.replace("# @STATE@", &state) + "\0").into_bytes()
}

pub(super) fn frame(frame: &Frame<'_>) -> Vec<u8> {
    let (setup, restore) = for_one_step(frame);
    let Frame { step, command, token, .. } = frame;
    // Only here the codes of a pipeline are known.
    let codes = if command.contains('|') && !command.ends_with('\\') {
        "\nset -g __outlast_s $status $pipestatus"
    } else {
        ""
    };
    format!("r\0{step}\0{setup}\0{command}{codes}\0{token}\0{restore}\0").into_bytes()
}

/// A word that fish reads as this text.
pub(super) fn escaped(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

/// What sets the folder and the variables of one step, and what puts them back.
fn for_one_step(frame: &Frame<'_>) -> (String, String) {
    let (mut setup, mut restore) = (String::new(), String::new());
    for (i, (name, value)) in frame.env.iter().enumerate() {
        setup += &format!(
            "set -e __outlast_h{i}; set -q {name}; and begin; set -g __outlast_h{i} -gu; set -qx {name}; \
             and set -g __outlast_h{i} -gx; set -g __outlast_v{i} ${name}; end; "
        );
        match value {
            Some(value) => setup += &format!("set -gx {name} {}; ", escaped(value)),
            None => setup += &format!("set -e {name}; "),
        }
        restore += &format!(
            "if set -q __outlast_h{i}; set $__outlast_h{i} {name} $__outlast_v{i}; else; set -e {name}; end; \
             set -e __outlast_h{i}; set -e __outlast_v{i}; "
        );
    }
    if let Some(folder) = frame.folder {
        let said = escaped(&no_such_folder(folder));
        setup += &format!(
            "set -g __outlast_w $PWD; builtin cd {}; or set -g __outlast_c {}; ",
            escaped(folder),
            escaped(&format!("echo {said} >&2; false")),
        );
        restore += "builtin cd $__outlast_w; set -e __outlast_w; ";
    }
    (setup, restore)
}
