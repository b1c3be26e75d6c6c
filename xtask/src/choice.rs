//! `cargo xtask VERB [--OPTION...] [NAME...]`: which of a verb's things are wanted.

/// What was asked for on the command line.
pub(crate) struct Choice<'a> {
    options: Vec<&'a str>,
    names: Vec<&'a str>,
}

impl<'a> Choice<'a> {
    /// # Errors
    /// An option or a name that there is not.
    pub(crate) fn read(
        words: &[&'a str],
        options: &[&str],
        what: &str,
        known: &[&str],
    ) -> Result<Self, String> {
        let (given, names): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|w| w.starts_with("--"));
        if let Some(unknown) = given.iter().find(|option| !options.contains(*option)) {
            return Err(format!("there is no option {unknown}"));
        }
        if let Some(unknown) = names.iter().find(|name| !known.contains(*name)) {
            return Err(format!("there is no {what} {unknown}; there are {}", known.join(", ")));
        }
        Ok(Self { options: given, names })
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// No names stand for everything.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.is_all() || self.names.contains(&name)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.names.is_empty()
    }
}
