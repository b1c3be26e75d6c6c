//! What a rule matches, and how certainly.

use super::*;
use crate::word::plain_words;

fn rule(decision: Decision, prefix: &[&str]) -> Rule {
    Rule {
        decision,
        prefix: prefix.iter().map(|word| vec![(*word).to_owned()]).collect(),
        tool: None,
        files: None,
        why: None,
        place: Place { file: Arc::new(PathBuf::from("policy.toml")), line: 1 },
    }
}

fn words(line: &str) -> Vec<Word> {
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    plain_words(&argv)
        .into_iter()
        .map(|word| if word.text.starts_with('$') { Word::dynamic() } else { word })
        .collect()
}

fn check(prefix: &[&str], cases: &[(&str, Strength)]) {
    let rule = rule(Decision::Deny, prefix);
    for (line, expected) in cases {
        assert_eq!(rule.speaks_of(&words(line)), *expected, "{prefix:?} and {line}");
    }
}

use Strength::{Maybe, No, Yes};

#[test]
fn options_of_the_program_may_come_before_its_verb() {
    check(
        &["git", "push"],
        &[
            ("git push", Yes),
            ("/usr/bin/git push origin", Yes),
            ("git -C there push", Yes),
            ("git --no-pager push", Yes),
            ("git --git-dir=x push", Yes),
            ("git --unheard-of push", Maybe),
            ("git --unheard-of value push", Yes),
            ("git -c push log", No),
            ("git stash push", No),
            ("git log push", No),
            ("git", No),
            ("git $verb", Maybe),
            ("$program push", Maybe),
            ("gitk push", No),
            ("/usr/lib/git-core/git-push origin", Yes),
            ("git-pushy", No),
            ("=git push", Yes),
        ],
    );
}

#[test]
fn options_may_be_written_together_apart_and_by_their_long_names() {
    check(
        &["rm", "-rf"],
        &[
            ("rm -rf /", Yes),
            ("rm -fr /", Yes),
            ("rm -r -f /", Yes),
            ("rm / -rfv", Yes),
            ("rm -Rf /", Maybe),
            ("rm --recursive --force /", Maybe),
            ("rm --recurs -f /", Maybe),
            ("rm -r x", No),
            ("rm -- -rf", No),
            ("rm $flags x", Maybe),
        ],
    );
    check(
        &["git", "push", "--force"],
        &[
            ("git push --force", Yes),
            ("git push origin main --force", Yes),
            ("git push --forc", Maybe),
            ("git push -f", Maybe),
            ("git push origin", No),
        ],
    );
    check(&["find", "-delete"], &[("find . -delete", Yes), ("find . -name x", No)]);
}

#[test]
fn only_commands_that_are_written_exactly_so_are_permitted() {
    let rule = rule(Decision::Allow, &["git", "status"]);
    assert_eq!(rule.speaks_of(&words("git status --short")), Yes);
    for line in ["git -C x status", "./git status", "/tmp/git status", "git $x", "git", "$x status"] {
        assert_eq!(rule.speaks_of(&words(line)), No, "{line}");
    }
}

#[test]
fn a_mention_is_whole_words_in_order() {
    let push = rule(Decision::Deny, &["git", "push"]);
    assert!(push.is_mentioned_in("os.system('git push')"));
    assert!(push.is_mentioned_in("['/usr/bin/git', '-C', 'x', 'push']"));
    assert!(!push.is_mentioned_in("push the git history"));
    let remove = rule(Decision::Ask, &["rm"]);
    assert!(remove.is_mentioned_in("system(\"rm -rf /\")"));
    assert!(!remove.is_mentioned_in("gcc farm.c rm.c -o rm_all"));
}
