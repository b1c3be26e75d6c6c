//! Man pages: what clap_mangen makes of the grammar, with examples as they were written and with what every page should
//! have: exit status, files, environment.

use std::fmt::Write;

use clap::Command;
use clap_mangen::Man;

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "It was done."),
    ("1", "It failed."),
    ("2", "The command line was wrong."),
    ("3", "There is no such job."),
    ("4", "The job runs on: it was not finished in time, it waits for input, or it was left."),
    ("5", "It was denied, by a policy or a person."),
    (
        "others",
        "A foreground \\fBrun\\fR or \\fBrerun\\fR, and a \\fBwait\\fR for the end, exit with the job's own code, or 128 and \
         the number of the signal that ended it.",
    ),
];

const FILES: &[(&str, &str)] = &[
    ("~/.local/state/outlast", "The folder of all jobs."),
    ("~/.config/outlast/config.toml", "Settings."),
    ("~/.config/outlast/policy.toml", "What agents may do."),
    (".outlast/policy.toml", "The same, for a project."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("OUTLAST_HOME", "The folder of all jobs. Set inside of a job, unless that is in a sandbox."),
    ("OUTLAST_JOB", "Set inside of a job: its number."),
    ("OUTLAST_SESSION", "Who owns the jobs that are started [default: one for each terminal]."),
    ("OUTLAST_CONFIG", "The file of the settings."),
    ("OUTLAST_MASK", "1 hides secrets, 0 shows them; otherwise they are hidden from agents."),
    ("NO_COLOR", "No colours, if it is not empty."),
];

/// Every page with its file name.
pub(super) fn pages(grammar: &Command) -> Vec<(String, Vec<u8>)> {
    let mut all = grammar.clone().disable_help_subcommand(true);
    all.build();
    let mut pages = Vec::new();
    add(&all, "outlast", &mut pages);
    pages
}

fn add(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    pages.push((format!("{name}.1"), page(command, name)));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        add(verb, &format!("{name}-{}", verb.get_name()), pages);
    }
}

fn page(command: &Command, name: &str) -> Vec<u8> {
    let man = Man::new(command.clone().display_name(name.to_owned()));
    let mut page = Vec::new();
    // Writes into memory do not fail.
    let _ = man.render_title(&mut page);
    let _ = man.render_name_section(&mut page);
    let _ = man.render_synopsis_section(&mut page);
    let _ = man.render_description_section(&mut page);
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        let _ = man.render_options_section(&mut page);
    }
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        let _ = man.render_subcommands_section(&mut page);
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut text = examples(&help);
    text.push_str(&exit_status(&help));
    text.push_str(&list("FILES", FILES));
    text.push_str(&list("ENVIRONMENT", ENVIRONMENT));
    page.extend_from_slice(text.as_bytes());
    if command.get_version().is_some() {
        let _ = man.render_version_section(&mut page);
    }
    page
}

/// The examples, line by line: their columns stay as they are.
fn examples(help: &str) -> String {
    let mut text = String::new();
    let lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    for line in lines.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let _ = writeln!(text, "{}", literal(line));
    }
    if text.is_empty() {
        return text;
    }
    format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", text.trim_end())
}

/// What every verb exits with, and what this one says of its own.
fn exit_status(help: &str) -> String {
    let mut text = list("EXIT STATUS", EXIT_STATUS);
    let own: Vec<&str> = help.lines().skip_while(|line| !line.starts_with("Exit codes")).collect();
    if let Some(own) = own.join(" ").strip_prefix("Exit codes: ").filter(|own| !own.starts_with("0 done")) {
        let _ = writeln!(text, ".PP\nHere: {}", literal(own));
    }
    text
}

fn list(title: &str, rows: &[(&str, &str)]) -> String {
    let mut text = format!(".SH \"{title}\"\n");
    for (name, said) in rows {
        let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{said}", literal(name));
    }
    text
}

/// A line as it is: what roff would take for its own is escaped.
fn literal(line: &str) -> String {
    let safe = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if safe.starts_with('.') { format!("\\&{safe}") } else { safe }
}
