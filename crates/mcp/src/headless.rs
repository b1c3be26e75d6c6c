//! Whether an agent runs without a person, known before anything is asked: from the command line of the
//! process that started this server. `claude -p` and `codex exec` declare that they can ask, and then refuse
//! by themselves. That would count as the user's refusal, so they must not be asked.

/// The agents with such a mode: their names as clients and as programs, and the arguments that select it.
const AGENTS: [(&str, &str, &[&str]); 2] =
    [("claude-code", "claude", &["-p", "--print"]), ("codex-mcp-client", "codex", &["exec", "e"])];

/// Whether the client with this name runs without a person.
pub(crate) fn is_headless(client: &str) -> bool {
    let parent = std::os::unix::process::parent_id();
    let line = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    says_headless(client, &words)
}

fn says_headless(client: &str, words: &[String]) -> bool {
    let Some((_, program, modes)) = AGENTS.iter().find(|(name, ..)| *name == client) else { return false };
    let is_it = |word: &String| word.rsplit('/').next().is_some_and(|name| name == *program);
    // The program itself, or a script that an interpreter runs.
    let Some(at) = words.iter().take(2).position(is_it) else { return false };
    // What comes after `--` is the prompt.
    words[at + 1..].iter().take_while(|word| *word != "--").any(|word| modes.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_whether_it_is_headless() {
        let says = |client: &str, line: &str| {
            says_headless(client, &line.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>())
        };
        assert!(says("claude-code", "claude -p hi --strict-mcp-config"));
        assert!(says("claude-code", "node /usr/bin/claude --print hi"));
        assert!(says("codex-mcp-client", "/opt/bin/codex exec --json go"));
        assert!(!says("claude-code", "claude --continue"));
        assert!(!says("claude-code", "claude -- -p"));
        assert!(!says("codex-mcp-client", "codex"));
        assert!(!says("another", "claude -p hi"));
        assert!(!says("claude-code", "bash -p claude.sh"));
        assert!(!says("claude-code", ""));
    }
}
