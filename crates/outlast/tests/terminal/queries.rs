//! What programs ask a terminal: answered, so that none of them hangs, and never acted on.

use crate::{ends_with, lines, sandbox, screen, tui_job, wait_to_show};

#[test]
fn what_programs_ask_when_they_start_is_answered() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["asks-terminal"]);
    ends_with(&sandbox, job, 0);
    let lines = lines(&sandbox, job);
    let answer = |name: &str| {
        let start = format!("{name}: <");
        let line = lines.iter().find_map(|line| line.strip_prefix(&start)?.strip_suffix('>'));
        line.unwrap_or_else(|| panic!("no {name} in {lines:?}")).to_owned()
    };
    assert_eq!(answer("DA1"), "ESC [?6c");
    assert_eq!(answer("DA2"), "ESC [>0;2600;1c");
    assert_eq!(answer("CPR"), "ESC [3;7R");
    assert_eq!(answer("DECRQM-set"), "ESC [?2004;1$y");
    assert_eq!(answer("DECRQM-reset"), "ESC [?2004;2$y");
    assert_eq!(answer("DECRQM-unknown"), "ESC [?9999;0$y");
    assert!(answer("XTVERSION").starts_with("ESC P>|outlast("), "{}", answer("XTVERSION"));
    assert!(answer("OSC-4").starts_with("ESC ]4;1;rgb:"), "{}", answer("OSC-4"));
    assert!(answer("OSC-10").starts_with("ESC ]10;rgb:"), "{}", answer("OSC-10"));
    assert!(answer("OSC-11").starts_with("ESC ]11;rgb:"), "{}", answer("OSC-11"));
    assert_eq!(answer("kitty"), "ESC [?0u");
    assert_eq!(answer("size"), "ESC [8;40;120t");
    // A title that is reported back would be typed into the next shell; a clipboard is nobody's business.
    for never in ["title-report", "clipboard", "move-window", "answerback"] {
        assert_eq!(answer(never), "", "{never}");
    }
}

#[test]
fn a_window_request_moves_nothing_and_a_title_is_known() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["wants", "window", "clipboard", "title"]);
    let shot = wait_to_show(&sandbox, job, "asked for");
    assert_eq!(shot["size"], serde_json::json!({ "cols": 120, "rows": 40 }));
    assert_eq!(shot["title"], "a title");
    assert_eq!(lines(&sandbox, job), ["asked for"]);
}

#[test]
fn the_bell_is_counted_and_modes_are_told() {
    let sandbox = sandbox();
    let job =
        sandbox.start(["--", "sh", "-c", "printf '\\a\\a\\033[?2004h\\033[?1h\\033[?25lready'; read x"]);
    wait_to_show(&sandbox, job, "ready");
    let shot = screen(&sandbox, job);
    assert_eq!(shot["bells"], 2);
    assert_eq!(shot["bracketed_paste"], true);
    assert_eq!(shot["application_cursor"], true);
    assert_eq!(shot["cursor"], serde_json::json!({ "row": 0, "col": 5, "visible": false }));
}
