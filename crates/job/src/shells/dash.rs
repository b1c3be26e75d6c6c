//! Dash: it has no hook and no way back from an error, so each step is a fork of one shell that only hands on: it loads what
//! the step before it left (variables, aliases, options, traps, umask, folder), and says at its end what it leaves.
//! Dash can't list functions: they do not outlast their step.

use super::{Frame, no_such_folder, quoted};

const DRIVER: &str = include_str!("dash.sh");

pub(super) fn start(rc: bool) -> (Vec<String>, Vec<(String, String)>) {
    let argv = ["dash", "-c", r#"eval "$__outlast_first""#].map(str::to_owned).to_vec();
    let rc = if rc {
        r#"[ -r "${ENV:-$HOME/.profile}" ] && . "${ENV:-$HOME/.profile}" >/dev/null 2>&1 8<&-"#
    } else {
        ""
    };
    (argv, vec![("__outlast_first".into(), DRIVER.replace("# @RC@", rc))])
}

pub(super) fn frame(frame: &Frame<'_>) -> Vec<u8> {
    let (setup, restore) = for_one_step(frame);
    let parts = [&setup, frame.carried, frame.command, &restore];
    let counts: Vec<String> = parts.iter().map(|part| lines(part).to_string()).collect();
    let mut text = format!("r {} {}\n", frame.step, counts.join(" "));
    for part in parts.into_iter().chain([frame.token]).filter(|part| !part.is_empty()) {
        text += part;
        text.push('\n');
    }
    text.into_bytes()
}

/// A question to the shell, with what it needs to know of itself.
pub(super) fn ask(kind: char, step: u64, carried: &str, token: Option<&str>) -> Vec<u8> {
    let mut text = format!("{kind} {step} 0 {} 0 0\n", lines(carried));
    for part in [Some(carried), token].into_iter().flatten().filter(|part| !part.is_empty()) {
        text += part;
        text.push('\n');
    }
    text.into_bytes()
}

fn lines(part: &str) -> usize {
    if part.is_empty() { 0 } else { part.matches('\n').count() + 1 }
}

/// What sets the folder and the variables of one step, and what puts them back.
fn for_one_step(frame: &Frame<'_>) -> (String, String) {
    let (mut setup, mut restore) = (String::new(), String::new());
    for (i, (name, value)) in frame.env.iter().enumerate() {
        setup += &format!(
            "__outlast_h{i}=${{{name}+x}} __outlast_v{i}=${{{name}-}}; \
             case \"\n$(export -p)\" in *\"\nexport {name}=\"*) __outlast_h{i}=${{__outlast_h{i}}}x;; esac; "
        );
        match value {
            Some(value) => setup += &format!("export {name}={}; ", quoted(value)),
            None => setup += &format!("unset {name}; "),
        }
        restore += &format!(
            "unset {name}; case $__outlast_h{i} in xx) export {name}=\"$__outlast_v{i}\";; x) {name}=$__outlast_v{i};; esac; \
             unset __outlast_h{i} __outlast_v{i}; "
        );
    }
    if let Some(folder) = frame.folder {
        setup += &format!(
            "__outlast_w=$PWD __outlast_v=${{OLDPWD-}}; \\cd -- {} 2>/dev/null || __outlast_c={}; ",
            quoted(folder),
            quoted(&format!("printf '%s\\n' {} >&2; false", quoted(&no_such_folder(folder)))),
        );
        restore += "\\cd -- \"$__outlast_w\"; OLDPWD=$__outlast_v; unset __outlast_w __outlast_v; ";
    }
    (setup, restore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_in_lines() {
        let env = std::collections::BTreeMap::new();
        let frame = Frame { step: 3, command: "a\nb", folder: None, env: &env, carried: "x=1", token: "t" };
        assert_eq!(super::frame(&frame), b"r 3 0 1 2 0\nx=1\na\nb\nt\n");
        assert_eq!(ask('s', 0, "", None), b"s 0 0 0 0 0\n");
    }
}
