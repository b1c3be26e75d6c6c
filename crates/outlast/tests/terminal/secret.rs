//! A person answers a password prompt of a job from their own terminal.

use crate::person::Person;
use crate::sandbox;

#[test]
fn what_a_person_types_is_shown_nowhere_and_reaches_the_program() {
    let sandbox = sandbox();
    let script = r#"stty -echo; read -rp 'Password: ' pw; stty echo; [ "$pw" = "opensesame ü" ] && echo right || echo wrong"#;
    let job = sandbox.start(["bash", "-c", script]);
    sandbox.json(["wait", &job.to_string(), "--input", "--deadline", "20s"]);
    let person = Person::calls(&sandbox, (80, 24), &["secret", &job.to_string()]);
    person.sees("nothing is shown");
    person.types("opensesameX\x7f ü\r".as_bytes());
    assert_eq!(person.is_back_in_the_shell(), 0);
    person.terminal_is_restored();
    assert!(!person.got().contains("open"), "{:?}", person.got());
    sandbox.wait_for_text(job, "right");
}

#[test]
fn a_person_who_changes_their_mind_types_nothing() {
    let sandbox = sandbox();
    let job = sandbox.start(["bash", "-c", "stty -echo; read -rp 'Password: ' pw"]);
    sandbox.json(["wait", &job.to_string(), "--input", "--deadline", "20s"]);
    for keys in ["half\x03", "\x04"] {
        let person = Person::calls(&sandbox, (80, 24), &["secret", &job.to_string()]);
        person.sees("nothing is shown");
        person.types(keys.as_bytes());
        assert_eq!(person.is_back_in_the_shell(), 5);
        person.terminal_is_restored();
    }
    let person = Person::calls(&sandbox, (80, 24), &["secret", &job.to_string()]);
    person.sees("nothing is shown");
    person.client_is_killed();
    person.terminal_is_restored();
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["status"], "running");
}
