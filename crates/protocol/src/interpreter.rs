//! Another program than bash to read a command line: which words start it.

use crate::Run;
use crate::failure::Failure;

/// Programs that take code after another option than `-c`.
const CODE_OPTIONS: &[(&str, &str)] =
    &[("node", "-e"), ("perl", "-e"), ("ruby", "-e"), ("php", "-r"), ("lua", "-e"), ("Rscript", "-e")];

/// The command that has a program read a line. What is given is the program's name or path, and options of it.
///
/// # Errors
/// There is no name in it.
pub fn with_interpreter(given: &str, line: &str) -> Result<Run, Failure> {
    let mut argv: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    let Some(program) = argv.first() else {
        return Err(Failure::usage("it has no name").hint("write for example: --with fish"));
    };
    let name = program.rsplit('/').next().unwrap_or_default();
    let option = CODE_OPTIONS.iter().find(|(known, _)| *known == name).map_or("-c", |(_, option)| option);
    argv.extend([option.to_owned(), line.to_owned()]);
    Ok(Run::Program(argv))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_other_languages_get_their_own_option() {
        let words = |given: &str| match with_interpreter(given, "x y").unwrap() {
            Run::Program(argv) => argv.join("|"),
            Run::Shell(line) => line,
        };
        assert_eq!(words("fish"), "fish|-c|x y");
        assert_eq!(words("/usr/bin/zsh -f"), "/usr/bin/zsh|-f|-c|x y");
        assert_eq!(words("node"), "node|-e|x y");
        assert!(with_interpreter(" ", "x").is_err());
    }
}
