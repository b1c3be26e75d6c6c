//! Zsh: an interactive shell that reads a short script from memory again and again; each reading takes the next step from
//! the line and evaluates it at the top level, where `typeset`, `return` and `local` mean what they mean at a prompt.
//! An interrupt or an error ends no more than one reading.

use super::{Frame, Numbers, counted, may_add_line, no_such_folder, quoted};

const DRIVER: &str = include_str!("zsh.sh");
/// What is read for each step.
pub(super) const PUMP: &str = include_str!("zsh_pump.sh");

pub(super) fn start(Numbers { line, beside }: Numbers) -> (Vec<String>, Vec<(String, String)>) {
    let argv = ["zsh", "-f", "-i", "-c", r#"\builtin eval "$__outlast_first""#].map(str::to_owned).to_vec();
    // Zsh can only close descriptors of one digit for a command.
    let close = |fd: i32| match fd {
        7 | 8 => String::new(),
        fd => format!("__outlast={fd}; \\builtin exec {{__outlast}}<&-; "),
    };
    let first = format!(
        "\\builtin exec 8<&{line} 7<&{beside}; {}{}\
         \\builtin read -r -d '' -u 8 __outlast && \\builtin eval \"$__outlast\"; \
         while \\builtin :; do __outlast_k=-; \\builtin . /proc/self/fd/7; [[ $__outlast_k == - ]] && \\exit 97; done",
        close(line),
        close(beside)
    );
    (argv, vec![("__outlast_first".into(), first)])
}

pub(super) fn driver(rc: bool, state: Option<&str>) -> Vec<u8> {
    let mut driver = DRIVER.to_owned();
    let also = |text: &str| {
        format!(
            "{{\n\\builtin eval {}\n}} always {{\nTRY_BLOCK_ERROR=0\n}} >/dev/null 2>&1 7<&- 8<&-\n",
            quoted(text)
        )
    };
    if rc {
        driver += &also(
            "for __outlast in .zshenv .zshrc; do __outlast=${ZDOTDIR:-$HOME}/$__outlast; \
             [[ -r $__outlast ]] && \\builtin . $__outlast; done",
        );
    }
    driver += "__outlast_state 2>/dev/null >&8\n";
    if let Some(state) = state.filter(|state| !state.is_empty()) {
        driver += &also(state);
    }
    driver += "\\builtin unset __outlast\n\0";
    driver.into_bytes()
}

pub(super) fn frame(frame: &Frame<'_>) -> Vec<u8> {
    let (setup, restore) = for_one_step(frame);
    let kind = if may_add_line(frame.command) { 'r' } else { 'q' };
    counted(kind, frame, (&setup, "", &restore))
}

/// What sets the folder and the variables of one step, and what puts them back.
fn for_one_step(frame: &Frame<'_>) -> (String, String) {
    let (mut setup, mut restore) = (String::new(), String::new());
    for (i, (name, value)) in frame.env.iter().enumerate() {
        setup +=
            &format!("__outlast_h{i}=${{(t){name}}}; [[ -n $__outlast_h{i} ]] && __outlast_v{i}=${name};");
        match value {
            Some(value) => setup += &format!("\\builtin export {name}={};", quoted(value)),
            None => setup += &format!("\\builtin unset {name};"),
        }
        restore += &format!(
            "if [[ -n $__outlast_h{i} ]]; then \\builtin export {name}=\"$__outlast_v{i}\"; \
             [[ $__outlast_h{i} == *export* ]] || \\builtin typeset -g +x {name}; else \\builtin unset {name}; fi; \
             \\builtin unset __outlast_h{i} __outlast_v{i};"
        );
    }
    if let Some(folder) = frame.folder {
        setup += &format!(
            "__outlast_w=$PWD __outlast_v=$OLDPWD; \\builtin cd -q -- {} || __outlast_c={};",
            quoted(folder),
            quoted(&format!(
                "\\builtin print -r -- {} >&2; \\builtin false",
                quoted(&no_such_folder(folder))
            )),
        );
        restore += "\\builtin cd -q -- \"$__outlast_w\"; OLDPWD=$__outlast_v;";
    }
    (setup, restore)
}
