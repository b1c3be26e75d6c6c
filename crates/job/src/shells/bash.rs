//! Bash: an interactive shell whose prompt is never drawn, because what it runs before a prompt takes the next step from
//! the line and evaluates it at the top level. An interrupt or an error that throws the shell back to its top level comes
//! out at the same place. Whatever a step says about tracing, traps and options is put aside while the driver works.

use super::{Frame, counted, may_add_line, no_such_folder, quoted};

const FIRST: &str = include_str!("bash.sh");
const LAST: &str = include_str!("bash_last.sh");

pub(super) fn start(line: i32) -> (Vec<String>, Vec<(String, String)>) {
    let argv = ["bash", "--norc", "--noprofile", "-i"].map(str::to_owned).to_vec();
    let pump = r#"\builtin eval "$__outlast_pump";"#.repeat(16);
    let first =
        format!(r#"\builtin read -r -d "" -u {line} __outlast && \builtin eval "$__outlast"; {pump}"#);
    (argv, vec![("PROMPT_COMMAND".into(), first)])
}

pub(super) fn driver(rc: bool, line: i32, state: Option<&str>) -> Vec<u8> {
    let close = if line == 31 { String::new() } else { format!("\\exec 31<&{line} {line}<&-\n") };
    let rc = if rc { "[[ -r ~/.bashrc ]] && \\builtin . ~/.bashrc >/dev/null 2>&1 31<&-\n" } else { "" };
    let state = state.unwrap_or_default();
    let state = if state.is_empty() {
        String::new()
    } else {
        format!("\\builtin eval {} >/dev/null 2>&1 31<&-\n", quoted(state))
    };
    // A name that a startup file gave to something else is taken back by what comes after it.
    let tell = "__outlast_state 2>/dev/null >&31\n";
    format!("{close}{FIRST}{rc}{tell}{state}\\builtin set +o history\n{LAST}\0").into_bytes()
}

pub(super) fn frame(frame: &Frame<'_>) -> Vec<u8> {
    let (setup, restore) = for_one_step(frame);
    let carried = frame.carried.trim_end_matches('\n');
    let carried = if carried.is_empty() { String::new() } else { format!("{carried};") };
    let kind = if carried.is_empty() && may_add_line(frame.command) { 'r' } else { 'q' };
    counted(kind, frame, (&setup, &carried, &restore))
}

/// What sets the folder and the variables of one step, and what puts them back.
fn for_one_step(frame: &Frame<'_>) -> (String, String) {
    let (mut setup, mut restore) = (String::new(), String::new());
    for (i, (name, value)) in frame.env.iter().enumerate() {
        setup += &format!(
            "__outlast_h{i}=${{{name}+x}} __outlast_v{i}=${{{name}-}} __outlast_x{i}=${{{name}+${{{name}@a}}}};"
        );
        match value {
            Some(value) => setup += &format!("\\builtin export {name}={};", quoted(value)),
            None => setup += &format!("\\builtin unset -v {name};"),
        }
        restore += &format!(
            "if [[ $__outlast_h{i} ]]; then \\builtin export {name}=\"$__outlast_v{i}\"; \
             [[ $__outlast_x{i} == *x* ]] || \\builtin export -n {name}; else \\builtin unset -v {name}; fi; \
             \\builtin unset -v __outlast_h{i} __outlast_v{i} __outlast_x{i};"
        );
    }
    if let Some(folder) = frame.folder {
        let said = quoted(&no_such_folder(folder));
        setup += &format!(
            "__outlast_w=$PWD __outlast_o=${{OLDPWD-}}; \\builtin cd -- {} || __outlast_c={};",
            quoted(folder),
            quoted(&format!("\\builtin printf '%s\\n' {said} >&2; \\builtin false")),
        );
        restore += "\\builtin cd -- \"$__outlast_w\"; OLDPWD=$__outlast_o;";
    }
    (setup, restore)
}
