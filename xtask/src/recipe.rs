//! A recipe: how a recording is made, a step a line.

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The size of the terminal.
    Size(String),
    /// A file that is there when the command starts.
    File(String, String),
    /// The command, for the shell.
    Run(String),
    /// Until this text is on the screen.
    Wait(String),
    /// Typed as it is.
    Type(String),
    /// Typed, and then Enter.
    Line(String),
    /// One key.
    Key(String),
    /// Another size.
    Resize(String),
}

/// Reads a recipe.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| step(line).ok_or_else(|| format!("invalid step of a recipe: {line}"))).collect()
}

fn step(line: &str) -> Option<Step> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let text = rest.replace("\\n", "\n");
    Some(match word {
        "size" => Step::Size(text),
        "file" => {
            let (name, text) = text.split_once(' ')?;
            Step::File(name.into(), text.into())
        }
        "run" => Step::Run(text),
        "wait" => Step::Wait(text),
        "type" => Step::Type(text),
        "line" => Step::Line(text),
        "key" => Step::Key(text),
        "resize" => Step::Resize(text),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_strangers_refused() {
        let steps = parse("# a comment\nsize 80x24\nfile a one\\ntwo\nrun vim a\nline\n").unwrap();
        let file = Step::File("a".into(), "one\ntwo".into());
        let line = Step::Line(String::new());
        assert_eq!(steps, [Step::Size("80x24".into()), file, Step::Run("vim a".into()), line]);
        assert!(parse("dance").unwrap_err().contains("dance"));
    }
}
