//! Key names and what keys send, compared with xterm.

use proptest::prelude::*;

use super::*;

fn modes() -> Modes {
    Modes::fresh(true)
}

fn sent(name: &str, modes: &Modes) -> String {
    String::from_utf8(encode(&[Key::parse(name).unwrap()], modes)).unwrap()
}

#[test]
fn one_key_has_many_spellings() {
    for name in ["Ctrl-C", "C-c", "^C", "^c", "ctrl+c", "CTRL-c", "control-c"] {
        assert_eq!(sent(name, &modes()), "\x03", "{name}");
    }
    for name in ["Alt-x", "M-x", "meta+x", "A-x"] {
        assert_eq!(sent(name, &modes()), "\x1bx", "{name}");
    }
    for name in ["Shift-Tab", "S-Tab", "BackTab"] {
        assert_eq!(sent(name, &modes()), "\x1b[Z", "{name}");
    }
}

#[test]
fn every_key_sends_what_xterm_sends() {
    for (name, bytes) in [
        ("Enter", "\r"),
        ("Tab", "\t"),
        ("Escape", "\x1b"),
        ("esc", "\x1b"),
        ("Backspace", "\x7f"),
        ("Ctrl-Backspace", "\x08"),
        ("Delete", "\x1b[3~"),
        ("Insert", "\x1b[2~"),
        ("Up", "\x1b[A"),
        ("Down", "\x1b[B"),
        ("Right", "\x1b[C"),
        ("Left", "\x1b[D"),
        ("Home", "\x1b[H"),
        ("End", "\x1b[F"),
        ("PageUp", "\x1b[5~"),
        ("pgdn", "\x1b[6~"),
        ("Space", " "),
        ("F1", "\x1bOP"),
        ("F4", "\x1bOS"),
        ("F5", "\x1b[15~"),
        ("F12", "\x1b[24~"),
        ("F24", "\x1b[45~"),
        ("Ctrl-Space", "\0"),
        ("Ctrl-@", "\0"),
        ("Ctrl-[", "\x1b"),
        ("C-\\", "\x1c"),
        ("^]", "\x1d"),
        ("^^", "\x1e"),
        ("C-_", "\x1f"),
        ("^?", "\x7f"),
        ("Ctrl-Z", "\x1a"),
        ("Ctrl-Up", "\x1b[1;5A"),
        ("Ctrl-Shift-Up", "\x1b[1;6A"),
        ("Shift-F5", "\x1b[15;2~"),
        ("Alt-F1", "\x1b[1;3P"),
        ("Ctrl-Delete", "\x1b[3;5~"),
        ("Alt-Enter", "\x1b\r"),
        ("Alt-Ctrl-a", "\x1b\x01"),
        ("Alt--", "\x1b-"),
        ("a", "a"),
        ("Shift-a", "A"),
        ("-", "-"),
        ("é", "é"),
        ("Keypad5", "5"),
    ] {
        assert_eq!(sent(name, &modes()), bytes, "{name}");
    }
}

#[test]
fn modes_change_what_is_sent() {
    let cursor = Modes { application_cursor: true, ..modes() };
    assert_eq!((sent("Up", &cursor), sent("Home", &cursor)), ("\x1bOA".into(), "\x1bOH".into()));
    assert_eq!(sent("Ctrl-Up", &cursor), "\x1b[1;5A");
    let keypad = Modes { application_keypad: true, ..modes() };
    assert_eq!((sent("kp5", &keypad), sent("KeypadEnter", &keypad)), ("\x1bOu".into(), "\x1bOM".into()));
    let other = Modes { modify_other_keys: 2, ..modes() };
    assert_eq!(
        (sent("Ctrl-Enter", &other), sent("Ctrl-i", &other)),
        ("\x1b[27;5;13~".into(), "\x1b[27;5;105~".into())
    );
    assert_eq!((sent("Enter", &other), sent("x", &other)), ("\r".into(), "x".into()));
    assert_eq!(sent("Enter", &Modes::fresh(false)), "\n");
}

#[test]
fn an_unknown_key_suggests_similar_names() {
    let error = Key::parse("Entr").unwrap_err();
    assert_eq!(error.near[0], "Enter");
    assert!(error.to_string().contains("did you mean"), "{error}");
    assert_eq!(Key::parse("Ctrl-PageUpp").unwrap_err().near[0], "Ctrl-PageUp");
    assert_eq!(Key::parse("F25").unwrap_err().near, ["F1", "F24"]);
    for name in ["", "Ctrl-", "Ctrl-é", "Foo", "^", "\x1b", &"x".repeat(1000)] {
        if name != "^" {
            assert!(Key::parse(name).is_err(), "{name:?}");
        }
    }
}

#[test]
fn a_modifier_that_does_not_exist_is_an_unknown_key() {
    for name in ["Cmd-C", "Super-x", "Win-R", "Command-Q", "Hyper-a", "Fn-1", "Foo-é", "é1-x", "x-x-x", "--x"]
    {
        let error = Key::parse(name).unwrap_err();
        assert_eq!(error.name, name);
        assert!(error.near.iter().all(|near| Key::parse(near).is_ok()), "{error:?}");
    }
    let names = Key::names();
    for name in ["Enter", "PageDown", "F1", "F24", "Ctrl-C", "Alt-x", "Shift-Tab", "Keypad0"] {
        assert!(names.contains(name) && Key::parse(name).is_ok(), "{name}: {names}");
    }
}

proptest! {
    /// Names come from models. Any name is a key, or an error that suggests keys.
    #[test]
    fn any_name_is_a_key_or_an_error(
        name in prop_oneof![
            any::<String>(),
            "(Ctrl|Cmd|Fn|x|é|Shift|f|kp)?[-+^]?([-+^a-zé]|Enter|F[0-9]{1,3}|Tab|kp.)?[-+^]?.{0,3}",
        ]
    ) {
        match Key::parse(&name) {
            Ok(key) => prop_assert!(!encode(&[key], &modes()).is_empty(), "{name:?} sends nothing"),
            Err(error) => {
                prop_assert!(error.near.iter().all(|near| Key::parse(near).is_ok()), "{error:?}");
                prop_assert!(name.starts_with(&error.name));
            }
        }
    }
}

#[test]
fn text_of_several_lines_goes_as_a_paste_where_that_is_asked_for() {
    let paste_mode = Modes { bracketed_paste: true, ..modes() };
    assert_eq!(typed("ls", true, &paste_mode), b"ls\r");
    assert_eq!(typed("a\nb\r\n", false, &modes()), b"a\rb\r");
    assert_eq!(typed("a\nb", true, &paste_mode), b"\x1b[200~a\rb\x1b[201~\r");
    assert_eq!(typed("a\nb", true, &Modes::fresh(false)), b"a\nb\n");
}

#[test]
fn pasted_text_cannot_end_the_paste() {
    let paste_mode = Modes { bracketed_paste: true, ..modes() };
    let nested = "x\x1b[20\x1b[201~1~rm -rf\n";
    assert_eq!(paste(nested, &paste_mode), b"\x1b[200~xrm -rf\r\x1b[201~");
}
