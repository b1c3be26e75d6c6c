//! People in front of a job.

use outlast_testkit::Sandbox;
use serde_json::json;

use crate::person::Person;
use crate::{lines, press, sandbox, screen, tui_job, type_in, wait_for_screen, wait_to_show};

const SMALL: (u16, u16) = (80, 24);
/// Ctrl-].
const LEAVE: &[u8] = b"\x1d";

fn size(sandbox: &Sandbox, job: u64) -> serde_json::Value {
    screen(sandbox, job)["size"].clone()
}

#[test]
fn the_screen_is_there_at_once_with_colour_and_cursor() {
    let sandbox = sandbox();
    let job = sandbox.start([
        "--size",
        "80x24",
        "--",
        "sh",
        "-c",
        "printf 'one\\ntwo \\033[31mred\\033[0m > '; read x",
    ]);
    sandbox.wait_for_text(job, "red > ");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("leave it with Ctrl-]");
    let shot = person.sees("two red >");
    assert_eq!((shot.cursor.row, shot.cursor.col), (1, 10));
    assert_eq!(shot.rows[0], "one");
    assert!(person.got().contains("\x1b[0;31mred"), "{:?}", person.got());
}

#[test]
fn keys_go_to_the_job_and_the_answer_comes_back() {
    let sandbox = sandbox();
    let job = sandbox.start(["--", "sh", "-c", "read name; echo hello, $name; read end"]);
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.types(b"you\r");
    person.sees("hello, you");
    sandbox.wait_for_text(job, "hello, you");
}

#[test]
fn leaving_sends_nothing_and_restores_the_terminal() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen", "first line"]);
    wait_to_show(&sandbox, job, "full screen");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    assert!(person.sees("full screen").alternate);
    person.types(b"a");
    person.sees("<a>");
    let before = sandbox.log_len(job);
    person.types(LEAVE);
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.terminal_is_restored();
    person.sees("it runs on");
    // It gets what is typed after that, and nothing in between.
    press(&sandbox, job, &["b"]);
    wait_to_show(&sandbox, job, "<a><b>");
    assert!(sandbox.log_len(job) >= before);
}

#[test]
fn what_follows_the_leaving_key_is_not_for_the_job() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-keys"]);
    sandbox.wait_for_text(job, "ready");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.types(b"ab\x1dcd");
    assert_eq!(person.is_back_in_the_shell(), 0);
    press(&sandbox, job, &["z"]);
    sandbox.wait_for_text(job, "<z>");
    assert!(
        !lines(&sandbox, job).iter().any(|line| line.contains('c') || line.contains('d') && line != "ready")
    );
}

#[test]
fn a_long_paste_arrives_whole() {
    let sandbox = sandbox();
    let job = sandbox.start(["--", "sh", "-c", "stty raw -echo; echo go; head -c 20000 | wc -c; read x"]);
    sandbox.wait_for_text(job, "go");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    let text = "x".repeat(20_000);
    person.types(text.as_bytes());
    sandbox.wait_for_text(job, "20000");
}

#[test]
fn two_people_settle_on_the_smaller_size_and_it_comes_back() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-size"]);
    sandbox.wait_for_text(job, "size 120x40");
    let first = Person::attaches(&sandbox, (100, 30), job, &[]);
    first.sees("size 100x30");
    let second = Person::attaches(&sandbox, (90, 35), job, &[]);
    // Both see it, each on a terminal of another size than the job's.
    second.sees("size 90x30");
    first.sees("size 90x30");
    assert_eq!(size(&sandbox, job), json!({ "cols": 90, "rows": 30 }));
    second.types(LEAVE);
    assert_eq!(second.is_back_in_the_shell(), 0);
    wait_for_screen(&sandbox, job, |shot, _| shot["size"] == json!({ "cols": 100, "rows": 30 }));
    first.pulls_to(70, 20);
    first.sees("size 70x20");
    first.types(LEAVE);
    assert_eq!(first.is_back_in_the_shell(), 0);
    wait_for_screen(&sandbox, job, |shot, _| shot["size"] == json!({ "cols": 120, "rows": 40 }));
    sandbox.wait_for_text(job, "(?s)70x20.*size 120x40");
}

#[test]
fn on_a_terminal_of_another_size_the_screen_is_still_right() {
    let sandbox = sandbox();
    let job = sandbox.start(["--size", "40x5", "--", "sh", "-c", "read x; seq 1 30; printf '> '; read y"]);
    let small = Person::attaches(&sandbox, (40, 5), job, &[]);
    let large = Person::attaches(&sandbox, (100, 30), job, &[]);
    small.types(b"\r");
    // Five rows of the job's terminal, at the top of one with thirty.
    for person in [&small, &large] {
        let shot = person.sees(">");
        assert_eq!(shot.rows[..5], ["27", "28", "29", "30", ">"]);
        assert_eq!((shot.cursor.row, shot.cursor.col), (4, 2));
    }
    assert!(large.screen().rows[5..].iter().all(String::is_empty));
}

#[test]
fn who_only_looks_can_not_type_and_does_not_change_the_size() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-keys"]);
    sandbox.wait_for_text(job, "ready");
    let person = Person::attaches(&sandbox, SMALL, job, &["--read-only"]);
    person.sees("ready");
    person.types(b"abc");
    assert_eq!(size(&sandbox, job), json!({ "cols": 120, "rows": 40 }));
    // An agent types meanwhile: nobody holds the keyboard.
    press(&sandbox, job, &["z"]);
    person.sees("<z>");
    person.types(LEAVE);
    assert_eq!(person.is_back_in_the_shell(), 0);
    assert_eq!(lines(&sandbox, job), ["ready", "<z>"]);
}

#[test]
fn who_looks_on_a_small_terminal_sees_the_part_around_the_cursor() {
    let sandbox = sandbox();
    let job = sandbox.start(["--", "sh", "-c", "seq 1 38; printf 'the end> '; read x"]);
    sandbox.wait_for_text(job, "the end> ");
    let person = Person::attaches(&sandbox, (20, 4), job, &["--read-only"]);
    person.sees("the end>");
    // Any key takes the greeting away.
    person.types(b" ");
    let shot = person.sees_screen(|shot| shot.rows[0] == "36");
    assert_eq!(shot.rows, ["36", "37", "38", "the end>"]);
    assert_eq!((shot.cursor.row, shot.cursor.col), (3, 9));
}

#[test]
fn while_a_person_types_an_agent_can_not_unless_shared() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["shows-keys"]);
    sandbox.wait_for_text(job, "ready");
    let handle = job.to_string();
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    // Sitting there is not typing.
    press(&sandbox, job, &["a"]);
    // Read by itself: two keys that wait together are read as one.
    person.sees("<a>");
    person.types(b"b");
    person.sees("<b>");
    sandbox
        .run(["send", &handle, "--no-wait", "--key", "x"])
        .code(5)
        .says("a person is typing into job")
        .says("nothing was typed");
    person.types(LEAVE);
    assert_eq!(person.is_back_in_the_shell(), 0);
    // The keyboard is free as soon as they have left.
    wait_for_screen(&sandbox, job, |shot, _| shot["size"]["cols"] == 120);
    press(&sandbox, job, &["c"]);
    let person = Person::attaches(&sandbox, SMALL, job, &["--shared"]);
    person.types(b"d");
    person.sees("<d>");
    press(&sandbox, job, &["e"]);
    person.sees("<e>");
    assert_eq!(lines(&sandbox, job), ["ready", "<a>", "<b>", "<c>", "<d>", "<e>"]);
}

#[test]
fn the_end_of_the_job_is_told_with_its_code_and_the_terminal_restored() {
    let sandbox = sandbox();
    let job =
        sandbox.start(["--", "sh", "-c", "printf '\\033[?1049h\\033[?25lfull'; read x; echo bye; exit 7"]);
    sandbox.wait_for_text(job, "");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("full");
    person.types(b"\r");
    assert_eq!(person.is_back_in_the_shell(), 7);
    person.terminal_is_restored();
    assert!(person.got().contains("has ended"), "{}", person.got());
}

#[test]
fn after_a_full_screen_program_the_screen_below_it_is_shown() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen", "printed before"]);
    wait_to_show(&sandbox, job, "full screen");
    // A job that ends at once would leave no screen to look at.
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("full screen");
    let other = sandbox.start([
        "--size",
        "80x24",
        "--",
        "sh",
        "-c",
        "echo below; printf '\\033[?1049hfull'; read x; printf '\\033[?1049l'; read y",
    ]);
    wait_to_show(&sandbox, other, "full");
    let second = Person::attaches(&sandbox, SMALL, other, &[]);
    assert!(second.sees("full").alternate);
    second.types(b"\r");
    assert!(!second.sees("below").alternate);
    type_in(&sandbox, job, "");
}

#[test]
fn what_output_asks_of_a_terminal_does_not_reach_the_persons() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["wants", "clipboard", "title", "link", "window", "print"]);
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("asked for");
    let got = person.got();
    for request in ["\x1b]52", "\x1b]2", "\x1b]8", "\x1b[8;5;5t", "\x1b[5i", "\x1b[9;1t"] {
        assert!(!got.contains(request), "{request:?} in {got:?}");
    }
}

#[test]
fn attaching_in_the_middle_of_a_sequence_shows_no_half_of_it() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["half-a-sequence"]);
    sandbox.wait_for_text(job, "plain");
    let person = Person::attaches(&sandbox, SMALL, job, &[]);
    person.sees("plain");
    person.types(b"x");
    let shot = person.sees("done");
    assert_eq!(shot.rows[0], "plain red done");
}

#[test]
fn what_can_not_be_attached_to_says_why() {
    let sandbox = sandbox();
    let job = sandbox.start(["--", "true"]);
    sandbox.wait_for_end(job);
    let person = Person::calls(&sandbox, SMALL, &["attach", &job.to_string()]);
    assert_eq!(person.is_back_in_the_shell(), 1);
    assert!(person.got().contains("outlast replay"), "{}", person.got());
    let pipes = sandbox.start(["--pipe", "--", "cat"]);
    let person = Person::calls(&sandbox, SMALL, &["attach", &pipes.to_string()]);
    assert_eq!(person.is_back_in_the_shell(), 2);
    assert!(person.got().contains("runs on pipes"), "{}", person.got());
    person.terminal_is_restored();
    sandbox.run(["attach", &pipes.to_string()]).code(2).says("needs a terminal");
}
