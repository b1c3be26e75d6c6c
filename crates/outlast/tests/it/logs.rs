//! `outlast logs`: once, and as it comes.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::sandbox;

#[test]
fn logs_shows_what_was_printed() {
    let sandbox = sandbox();
    let job = sandbox.start([r"printf '\033[31mred\033[0m\n50%%\r100%%\nlast'"]);
    sandbox.wait_for_end(job);
    assert_eq!(sandbox.run(["logs", "1"]).ok().text(), "red\n100%\nlast\n");
    assert_eq!(sandbox.run(["logs", "--tail", "1", "1"]).ok().text(), "last\n");
    assert_eq!(sandbox.run(["logs", "--raw", "1"]).ok().stdout, sandbox.log(1));
}

#[test]
fn following_shows_each_line_as_it_comes_and_ends_with_the_job() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "says-when-told", "one", "two", "three"]);
    let mut following = sandbox.call(["logs", "-f", &job.to_string()]).spawn();
    let mut late = sandbox.call(["logs", "-f", "--tail", "0", &job.to_string()]).spawn();
    for (i, shown) in ["one\n", "one\ntwo\n"].into_iter().enumerate() {
        sandbox.run(["send", "1", "", "--no-wait"]).ok();
        eventually("the line is shown", TEST_TIMEOUT, || match following.stdout_so_far() {
            seen if seen == shown.as_bytes() => Ok(()),
            seen => Err(String::from_utf8(seen).unwrap()),
        });
        assert!(following.is_running() && late.is_running(), "round {i}");
    }
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    assert_eq!(following.wait().ok().text(), "one\ntwo\nthree\n");
    assert!(late.wait().ok().text().ends_with("three\n"));
}

#[test]
fn a_follower_whose_reader_is_gone_ends() {
    let sandbox = sandbox();
    sandbox.start(["--", &sandbox.fixture(), "counts", "100000", "10", "1", "0"]);
    // `head` takes one line and leaves.
    let ran = sandbox.shell("\"$PROGRAM\" logs -f 1 | head -n 1").run().ok();
    assert_eq!(ran.text(), "line 0\n");
    assert_eq!(sandbox.info(1)["status"], "running", "the job goes on");
}
