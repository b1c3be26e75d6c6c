//! What the tools of a job reported is in `wait --json` and in `show`.

use outlast_testkit::has;

use crate::sandbox;

const TESTS: &str = "import unittest
class Shop(unittest.TestCase):
    def test_price(self):
        self.assertEqual(3, 4)
    def test_name(self):
        pass
";

#[test]
fn the_end_of_a_test_run_has_counts_and_the_first_error() {
    if !has("python3") {
        return;
    }
    let sandbox = sandbox();
    std::fs::write(sandbox.work().join("test_shop.py"), TESTS).unwrap();
    let run = format!("cd {} && python3 -m unittest", sandbox.work().display());
    let job = sandbox.start(["--", "sh", "-c", &run]);
    let waited = sandbox.wait_for_end(job);
    let tool = &waited["outcome"]["tools"][0];
    assert_eq!((&tool["tool"], &tool["counts"]["failed"]), (&"unittest".into(), &1.into()), "{waited}");
    let error = &tool["findings"][0];
    assert!(error["file"].as_str().unwrap().ends_with("test_shop.py"), "{error}");
    assert_eq!((&error["line"], &error["message"]), (&4.into(), &"AssertionError: 3 != 4".into()), "{error}");
    let log = std::fs::read(waited["output_file"].as_str().unwrap()).unwrap();
    let at = usize::try_from(error["offset"].as_u64().unwrap()).unwrap();
    assert!(log[at..].starts_with(b"FAIL: test_price"), "{error}");
    let shown = sandbox.run(["show", "1"]).ok().text();
    assert!(shown.contains("unittest: 1 failed, 2 tests"), "{shown}");
    assert!(shown.contains("test_shop.py:4 test_price AssertionError: 3 != 4"), "{shown}");
}

/// Only the beginning and the end of a long log are looked at; sums over all lines are then not given.
#[test]
fn a_long_log_is_not_read_whole() {
    if !has("make") {
        return;
    }
    let sandbox = sandbox();
    let makefile = "all:\n\t@yes a line of progress | head -c 10000000; echo\n\t@exit 3\n";
    std::fs::write(sandbox.work().join("Makefile"), makefile).unwrap();
    let run = format!("make -C {}", sandbox.work().display());
    let job = sandbox.start(["--", "sh", "-c", &run]);
    sandbox.wait_for_end(job);
    let begin = std::time::Instant::now();
    let waited = sandbox.wait_for_end(job);
    let took = begin.elapsed();
    let tool = &waited["outcome"]["tools"][0];
    assert_eq!((&tool["tool"], &tool["findings"][0]["line"]), (&"make".into(), &3.into()), "{tool}");
    assert!(tool["findings"][0]["offset"].as_u64().unwrap() > 10_000_000, "{tool}");
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}
