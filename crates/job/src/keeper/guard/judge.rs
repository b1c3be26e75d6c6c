//! What an execution really runs, and what the rules say of it.
//!
//! A program is judged under the name it is called by, as the program that it is a copy of, and as what it hands on
//! without another `execve`: the interpreter of a script, the program of a dynamic loader, the applet of busybox. What
//! executes its own program, such as `env` or `nice`, is seen when it does.

use outlast_protocol::event::{ExecQuestion, ExecRefused};
use outlast_pty::exec_guard::ExecCall;
use outlast_pty::exec_guard::memory;
use outlast_pty::exec_guard::program::{Program, is_missing};
use outlast_pty::exec_guard::search::Search;
use outlast_rules::exec::{ExecDecision, ExecFinding, ExecRules};
use outlast_rules::loader::{self, Loaded, MAX_INTERPRETERS};
use outlast_rules::{Word, base, plain_words};
use rustix::io::Errno;
use rustix::process::Pid;

use super::known_programs::KnownPrograms;
use crate::clock::now_ms;

/// How much of a command is told.
const MAX_TOLD_BYTES: usize = 900;
/// A person is not asked about more than this: nobody can agree to what is left out.
const MAX_ASKED_BYTES: usize = 8000;

/// What is done about an execution.
#[derive(Debug)]
pub(in crate::keeper) enum Judgement {
    Allow,
    /// Nothing could be executed: this is what the kernel would say. It is not left to say it itself, as what we have not
    /// found is not judged.
    Missing(Errno),
    /// With what is told of it, if that is known.
    Refuse(Option<Box<ExecRefused>>),
    /// A person must agree.
    Ask(Box<Asks>),
}

/// What a person is asked; its number comes later.
#[derive(Debug)]
pub(super) struct Asks {
    pub(super) question: ExecQuestion,
    /// The program's name and its arguments.
    pub(super) command: Vec<String>,
}

/// The rules, and what is known of programs.
#[derive(Debug)]
pub(in crate::keeper) struct Judge {
    rules: ExecRules,
    programs: KnownPrograms,
    search: Search,
}

/// What a process wants to execute.
struct Wanted {
    path: Vec<u8>,
    argv: Vec<String>,
    cut: bool,
}

/// Why it is not known what would run.
#[derive(Debug, PartialEq, Eq)]
enum Unknown {
    /// It cannot be told.
    Unreadable,
    /// Nothing would: a file is not there, or may not be executed.
    Missing(Errno),
}

/// What an execution could be called.
#[derive(Debug, Default)]
struct Commands {
    all: Vec<Vec<Word>>,
}

/// How a program comes to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The kernel executes it: it must be allowed to be.
    Executed,
    /// Another program names it as its loader, and the kernel begins there: its arguments are those of the other.
    NamedAsLoader,
    /// A loader maps it by itself.
    Mapped,
}

/// A program that is about to run, as far as it is looked into.
struct Step<'a> {
    path: &'a str,
    argv: &'a [String],
    cut: bool,
    /// How many programs ran into each other before it.
    depth: usize,
    how: How,
}

impl Judge {
    /// `path` is where the job looks for its programs.
    pub(in crate::keeper) fn new(rules: ExecRules, path: Option<&str>) -> Self {
        let programs = KnownPrograms::find(rules.programs(), path);
        Self { rules, programs, search: Search::default() }
    }

    /// Judges a call. `use_grant` uses an agreed command up, and `still_waits` says whether the process that was read is
    /// the one that called.
    pub(in crate::keeper) fn judge(
        &mut self,
        call: &ExecCall,
        use_grant: impl Fn(usize) -> bool,
        still_waits: impl Fn(&ExecCall) -> bool,
    ) -> Judgement {
        let Ok(path) = memory::path(call) else { return Judgement::Refuse(None) };
        if let Some(error) = self.search.goes_on(call, &path) {
            return Judgement::Missing(error);
        }
        let program = match Program::of(call, &path, &mut self.search) {
            Ok(program) if program.is_executable() => Ok(program),
            // Searches in `PATH` make many of these.
            Ok(_) => return Judgement::Missing(Errno::ACCESS),
            Err(error) if is_missing(error) => return Judgement::Missing(error),
            Err(_) => Err(Unknown::Unreadable),
        };
        let Ok(memory::Arguments { argv, cut }) = memory::arguments(call) else {
            return Judgement::Refuse(None);
        };
        let wanted = Wanted { path, argv, cut };
        let commands = match program.and_then(|program| self.commands(call.pid, &program, &wanted)) {
            Ok(commands) => commands.all,
            Err(_) if !still_waits(call) => return Judgement::Refuse(None),
            Err(Unknown::Missing(error)) => return Judgement::Missing(error),
            Err(Unknown::Unreadable) => {
                let why = "it cannot be told what it would run".to_owned();
                return Judgement::Refuse(Some(told(call, &wanted, None, why)));
            }
        };
        let Some(ExecFinding { decision, rule }) = self.rules.judge(&commands) else {
            return Judgement::Allow;
        };
        // A yes to a process that is gone meanwhile is lost; but another's call is not asked about, and uses no grant up.
        if !still_waits(call) {
            return Judgement::Refuse(None);
        }
        let mut used = Vec::new();
        while decision == ExecDecision::Ask
            && let Some(grant) = self.rules.grant_for(&commands, |grant| used.contains(&grant))
        {
            if use_grant(grant) {
                return Judgement::Allow;
            }
            used.push(grant);
        }
        let why = match decision {
            ExecDecision::Deny => format!("the rule \"{}\" denies it", rule.shown),
            ExecDecision::Ask if wanted.cut || whole(&wanted).len() > MAX_ASKED_BYTES => {
                let why = format!(
                    "the rule \"{}\" asks a person about it, and it is too long to be shown to one",
                    rule.shown
                );
                return Judgement::Refuse(Some(told(call, &wanted, Some(rule.place.clone()), why)));
            }
            ExecDecision::Ask => {
                let question = ExecQuestion {
                    question: 0,
                    pid: call.pid.as_raw_nonzero().get(),
                    command: whole(&wanted),
                    rule: rule.shown.clone(),
                    place: rule.place.clone(),
                    why: rule.why.clone(),
                    until: now_ms() + self.rules.answer_within_ms,
                    host: None,
                };
                let mut command = vec![base(&String::from_utf8_lossy(&wanted.path)).to_owned()];
                command.extend_from_slice(wanted.argv.get(1..).unwrap_or_default());
                return Judgement::Ask(Box::new(Asks { question, command }));
            }
        };
        Judgement::Refuse(Some(told(call, &wanted, Some(rule.place.clone()), why)))
    }

    /// What the call could be called.
    fn commands(&mut self, pid: Pid, program: &Program, wanted: &Wanted) -> Result<Commands, Unknown> {
        let path = if wanted.path.is_empty() {
            program.name().to_string_lossy().into_owned()
        } else {
            String::from_utf8_lossy(&wanted.path).into_owned()
        };
        let mut commands = Commands::default();
        let step = Step { path: &path, argv: &wanted.argv, cut: wanted.cut, depth: 0, how: How::Executed };
        self.look_into(pid, program, &step, &mut commands)?;
        Ok(commands)
    }

    fn look_into(
        &mut self,
        pid: Pid,
        program: &Program,
        step: &Step<'_>,
        commands: &mut Commands,
    ) -> Result<(), Unknown> {
        if step.how != How::Mapped && !program.is_executable() {
            return Err(Unknown::Missing(Errno::ACCESS));
        }
        let arguments = step.argv.get(1..).unwrap_or_default();
        commands.add(step.path, arguments, step.cut);
        let name = base(step.path);
        let called = step.argv.first().map_or("", |called| base(called)).trim_start_matches('-');
        let found = self.programs.look(program, name, called).map_err(|_| Unknown::Unreadable)?;
        for copy_of in &found.copy_of {
            commands.add(copy_of, arguments, step.cut);
        }
        if found.many_in_one || loader::MANY_IN_ONE.contains(&name) {
            for (applet, at) in loader::applets(step.argv) {
                commands.add(applet, step.argv.get(at + 1..).unwrap_or_default(), step.cut);
            }
        }
        if step.depth >= MAX_INTERPRETERS {
            return Err(Unknown::Unreadable);
        }
        if step.how != How::NamedAsLoader && (found.loader || loader::is_loader_name(name)) {
            match loader::loaded(step.argv) {
                Loaded::Nothing => {}
                Loaded::Unknown => return Err(Unknown::Unreadable),
                Loaded::Program(index) => {
                    let path = &step.argv[index];
                    // Without a folder it is searched like a library.
                    if !path.contains('/') {
                        return Err(Unknown::Unreadable);
                    }
                    let argv = &step.argv[index..];
                    let next = Step { path, argv, cut: step.cut, depth: step.depth + 1, how: How::Mapped };
                    self.follow(pid, &next, commands)?;
                }
            }
        }
        if let Some(path) = &found.interpreter {
            let depth = step.depth + 1;
            let next = Step { path, argv: step.argv, cut: step.cut, depth, how: How::NamedAsLoader };
            self.follow(pid, &next, commands)?;
        }
        if let Some(line) = &found.shebang {
            let mut argv = vec![line.interpreter.clone()];
            argv.extend(line.argument.clone());
            argv.push(step.path.to_owned());
            argv.extend_from_slice(arguments);
            let path = line.interpreter.clone();
            let next =
                Step { path: &path, argv: &argv, cut: step.cut, depth: step.depth + 1, how: How::Executed };
            self.follow(pid, &next, commands)?;
        }
        Ok(())
    }

    fn follow(&mut self, pid: Pid, next: &Step<'_>, commands: &mut Commands) -> Result<(), Unknown> {
        // A name that is no text was changed when it was read, and would not be found.
        if next.path.contains(char::REPLACEMENT_CHARACTER) {
            return Err(Unknown::Unreadable);
        }
        match Program::at(pid, next.path.as_bytes()) {
            Ok(program) => self.look_into(pid, &program, next, commands),
            Err(error) if is_missing(error) => Err(Unknown::Missing(error)),
            Err(_) => Err(Unknown::Unreadable),
        }
    }
}

impl Commands {
    fn add(&mut self, program: &str, arguments: &[String], cut: bool) {
        let mut words = vec![Word::plain(program)];
        words.extend(plain_words(arguments));
        if cut {
            words.push(Word::dynamic());
        }
        self.all.push(words);
    }
}

/// What is told of an execution that did not happen.
fn told(call: &ExecCall, wanted: &Wanted, place: Option<String>, why: String) -> Box<ExecRefused> {
    Box::new(ExecRefused { pid: call.pid.as_raw_nonzero().get(), command: shown(wanted), why, place })
}

/// The program and its arguments as one line.
fn whole(wanted: &Wanted) -> String {
    let mut command = String::from_utf8_lossy(&wanted.path).into_owned();
    for argument in wanted.argv.iter().skip(1) {
        command.push(' ');
        command.push_str(argument);
    }
    command
}

/// The same to be told. Of a long one the middle is left out: its end matters as much as its start.
fn shown(wanted: &Wanted) -> String {
    let mut command = whole(wanted);
    if wanted.cut {
        command.push_str(" [and more arguments than were read]");
    }
    if command.len() <= MAX_TOLD_BYTES {
        return command;
    }
    let (start, end) = (MAX_TOLD_BYTES * 2 / 3, command.len() - MAX_TOLD_BYTES / 3);
    let start = &command[..command.floor_char_boundary(start)];
    let end = &command[command.ceil_char_boundary(end)..];
    format!("{start} [... {} bytes are not shown ...] {end}", command.len() - start.len() - end.len())
}
