//! `outlast read`: which part, how much, in which form.

use outlast_testkit::Sandbox;

use crate::{counted, sandbox};

fn hundred_lines() -> Sandbox {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["counts", "100", "0", "0", "0"]);
    sandbox.wait_for_end(job);
    sandbox
}

#[test]
fn parts_of_a_transcript() {
    let sandbox = hundred_lines();
    let read = |args: &[&str]| sandbox.call(["read", "1"]).args(args).run().ok().text();
    assert_eq!(read(&["--head", "2"]), "line 0\nline 1\n");
    assert_eq!(read(&["--tail", "2"]), "line 98\nline 99\n");
    assert_eq!(read(&["--grep", "^line .7$", "--tail", "30"]), "line 77\nline 87\nline 97\n");
    assert_eq!(read(&["--since", "8", "--until", "24"]), "line 1\nline 2\n");
    assert_eq!(read(&["--since", "999999"]), "");
    assert_eq!(read(&["--head", "0"]), "");
    assert_eq!(read(&["--tail", "0"]), "");
    assert_eq!(sandbox.run(["read", "1", "--raw"]).ok().stdout, counted(100));
    assert_eq!(sandbox.run(["read", "1", "--raw", "--since", "881"]).ok().text(), "line 99\r\n");
    assert_eq!(sandbox.run(["read", "1", "--grep", "nothing like it"]).code(1).text(), "");
    sandbox.run(["read", "1", "--head", "1", "--tail", "1"]).code(2);
}

#[test]
fn answers_go_on_where_the_last_one_ended() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-when-told", "one", "two"]).to_string();
    sandbox.run(["send", &job, "", "--no-wait"]).ok();
    sandbox.wait_for_text(1, "one\n");
    let first = sandbox.json(["read", &job]);
    sandbox.run(["send", &job, "", "--no-wait"]).ok();
    sandbox.wait_for_end(1);
    let second = sandbox.json(["read", &job, "--since", &first["offset"].to_string()]);
    let whole = format!("{}{}", first["output"].as_str().unwrap(), second["output"].as_str().unwrap());
    assert_eq!(whole, sandbox.run(["read", &job]).ok().text());
    let third = sandbox.json(["read", &job, "--since", &second["offset"].to_string()]);
    assert_eq!(third["output"], "", "{third}");
}

#[test]
fn a_long_answer_is_cut_and_says_how_to_read_the_rest() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["counts", "20000", "0", "0", "0"]);
    sandbox.wait_for_end(job);
    let answer = sandbox.json(["read", "1"]);
    let text = answer["output"].as_str().unwrap();
    assert!(text.len() <= 16384, "{} bytes", text.len());
    assert!(text.starts_with("line 0\n") && text.ends_with("line 19999\n"), "head and tail");
    let mark = text.lines().find(|line| line.contains("outlast read 1")).expect("the exact call");
    let omitted = answer["omitted_bytes"].as_u64().unwrap();
    assert!(omitted > 100_000 && mark.contains(&omitted.to_string()), "{mark}");
    let numbers: Vec<&str> = mark.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    let args: Vec<&str> = mark[mark.find("outlast read").unwrap()..].split([' ', ']', '`']).skip(1).collect();
    assert!(numbers.len() >= 3, "{mark}");
    // The call in the mark reads exactly what is missing.
    let args: Vec<&str> = args
        .into_iter()
        .take_while(|arg| arg.starts_with('-') || arg.chars().all(|c| c.is_ascii_alphanumeric()))
        .filter(|arg| !arg.is_empty())
        .collect();
    let rest = sandbox.run(args).ok().text();
    let at = text.find(mark).unwrap();
    let whole: String = (0..20000).map(|i| format!("line {i}\n")).collect();
    let joined = format!("{}{rest}{}", &text[..at], text[at + mark.len()..].trim_start_matches('\n'));
    assert!(
        joined == whole,
        "{mark}\nhead ..{:?}\nrest {:?}..{:?}",
        &text[at - 30..at],
        &rest[..30.min(rest.len())],
        &rest[rest.len().saturating_sub(30)..]
    );
    assert_eq!(sandbox.run(["read", "1", "--max", "0"]).ok().text(), whole);
    assert!(sandbox.run(["read", "1", "--max", "1000"]).ok().text().len() <= 1000);
}

#[test]
fn redraws_collapse_and_what_could_do_harm_is_gone() {
    let sandbox = sandbox();
    let line = r"printf 'a\033[1mb\033[0m\033]0;title\007c\n'; for i in 1 2 3; do printf '\rstep %s' $i; done; printf '\n\007tab\there\n'";
    let job = sandbox.start([line]);
    sandbox.wait_for_end(job);
    assert_eq!(sandbox.run(["read", "1"]).ok().text(), "abc\nstep 3\ntab\there\n");
    assert_eq!(sandbox.json(["read", "1"])["output"], "abc\nstep 3\ntab\there\n");
}
