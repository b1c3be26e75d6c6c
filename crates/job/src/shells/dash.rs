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
    script('r', frame.step, [("s", &setup), ("d", frame.carried), ("c", frame.command), ("z", &restore)])
}

/// A question to the shell, with what it needs to know of itself.
pub(super) fn ask(kind: char, step: u64, carried: &str) -> Vec<u8> {
    script(kind, step, [("s", ""), ("d", carried), ("c", ""), ("z", "")])
}

/// What dash reads: it would take a system call for each byte of anything but a script.
fn script(kind: char, step: u64, parts: [(&str, &str); 4]) -> Vec<u8> {
    let mut text = format!("__outlast_k={kind} __outlast_step={step}");
    for (name, part) in parts {
        text += &format!(" __outlast_{name}={}", quoted(part));
    }
    text += "\nreturn 0\n";
    text.into_bytes()
}

/// What the shell said of itself, as what it must be told: its aliases come as dash lists them, between two marks.
pub(super) fn carried(said: &str) -> String {
    let mut parts = said.splitn(3, '\u{1}');
    let (Some(options), Some(aliases), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return said.to_owned();
    };
    let mut text = options.to_owned();
    let mut quote = None;
    let mut begins = true;
    for c in aliases.chars() {
        if begins {
            text += "alias ";
        }
        text.push(c);
        match quote {
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            None | Some(_) => {}
        }
        begins = c == '\n' && quote.is_none();
    }
    text + rest
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
    fn a_step_is_a_script_and_aliases_come_back_as_commands() {
        let env = std::collections::BTreeMap::new();
        let frame = Frame { step: 3, command: "a\n'b'", folder: None, env: &env, carried: "x=1", token: "t" };
        let script = "__outlast_k=r __outlast_step=3 __outlast_s='' __outlast_d='x=1' \
                      __outlast_c='a\n'\\''b'\\''' __outlast_z=''\nreturn 0\n";
        assert_eq!(super::frame(&frame), script.as_bytes());
        let said = "set +o x\n\u{1}a='x\ny'\nb='it'\"'\"'s'\n\u{1}\\umask 0022\nv='\u{1}'\n";
        let wanted = "set +o x\nalias a='x\ny'\nalias b='it'\"'\"'s'\n\\umask 0022\nv='\u{1}'\n";
        assert_eq!(carried(said), wanted);
    }
}
