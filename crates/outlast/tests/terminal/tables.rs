//! Tables in terminals of several widths.

use crate::person::Person;
use crate::sandbox;

/// No row is wider than the terminal, and what matters is in it.
#[test]
fn the_list_of_jobs_fits_60_80_and_200_columns() {
    let sandbox = sandbox();
    let name = "a-name-that-is-rather-long-for-a-job";
    let long = "echo a line that is longer than most terminals are wide and goes on and on and on and on and on and on";
    sandbox.run(["run", "--name", name, long]).ok();
    sandbox.start([
        "--name",
        "ask",
        "--description",
        "asks for a 名前 of somebody",
        "read -p 'Your name? ' name",
    ]);
    sandbox.json(["wait", "ask", "--awaiting-input", "--deadline", "30s"]);
    sandbox
        .run(["run", "--", "bash", "-c", "exit 3", "/a/path/that/does/not/exist/anywhere/on/this/machine"])
        .code(3);
    for cols in [60, 80, 200] {
        let person = Person::calls(&sandbox, (cols, 24), &["jobs", "--all"]);
        let shot = person.sees("[back 0]");
        let rows: Vec<&str> = shot.rows.iter().map(|row| row.trim_end()).collect();
        let back = rows.iter().position(|row| row.contains("[back 0]")).unwrap();
        let table: Vec<&str> = rows[..back].iter().copied().filter(|row| !row.is_empty()).collect();
        let starts: Vec<&str> = table.iter().filter_map(|row| row.split(' ').next()).collect();
        assert_eq!(
            starts,
            ["JOB", "2", "3", "1"],
            "{cols} columns: each job is one row\n{}",
            table.join("\n")
        );
        assert!(table[1].contains("asks for input"), "{}", table.join("\n"));
        let asked = table[1].contains("? Your name?");
        assert!(asked || cols < 80, "{cols} columns: the question is in it\n{}", table.join("\n"));
    }
}

/// The list is drawn again when a job is started, and the screen is given back.
#[test]
fn a_watched_list_is_a_screen_of_its_own() {
    let sandbox = sandbox();
    let person = Person::calls(&sandbox, (80, 24), &["jobs", "--all", "--watch"]);
    person.sees("no jobs");
    sandbox.start(["--name", "late", "cat"]);
    person.sees("late");
    rustix::process::kill_process(person.client(), rustix::process::Signal::INT).unwrap();
    assert_eq!(person.is_back_in_the_shell(), 0);
    let shot = person.screen();
    assert!(!shot.alternate && !shot.rows.iter().any(|row| row.contains("late")), "{:?}", shot.rows);
}
