//! `outlast cp`: what a job printed, and small files, from and to other machines. Nothing but jobs is needed for it at the other
//! end: a file is read there by `cat` and written by `cp`, as jobs that the host's own policy judges, and that are removed afterwards.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outlast_cli::CpArgs;
use outlast_job::client::Piece;
use outlast_job::request::{ReadBytes, Stream};
use outlast_job::wire::{INPUT_PIECE, Send};
use outlast_job::{Failure, Job, JobSpec, Kind, Outlast, Run, Streams, Wait, session};
use outlast_policy::{OrderKind, Start};
use outlast_protocol::HostName;

use crate::answer;
use crate::ask::CliGate;
use crate::human;
use crate::output::Output;

/// How much is read at once.
const PIECE: usize = 256 << 10;
/// More than this is a case for rsync.
const MAX_SENT: u64 = 64 << 20;
/// How much of what goes wrong over there is shown.
const MAX_SAID: usize = 400;

/// One end of a copy.
enum End {
    /// Standard input or output.
    Standard,
    /// A file of this machine.
    Here(PathBuf),
    /// A file of another.
    There { host: HostName, path: String },
    /// What a job printed.
    Output(Box<Job>, Stream),
}

pub(super) fn cp(outlast: &Outlast, args: &CpArgs, out: &mut Output) -> Result<i32, Failure> {
    let source = source(outlast, args)?;
    let target = match parse(&args.target) {
        // As cp does, under the name that it had.
        End::Here(path) if path.is_dir() => End::Here(path.join(file_name(&source, args)?)),
        other @ (End::Standard | End::Here(_) | End::There { .. } | End::Output(..)) => other,
    };
    let gate = CliGate::open(outlast.home())?;
    let mut sink = Sink::open(outlast, &gate, &target)?;
    let mut bytes = 0;
    let copied = each(outlast, &gate, &source, |piece| {
        bytes += piece.len() as u64;
        sink.write(piece)
    });
    // What is not whole must not look as if it were.
    if let Err(failure) = copied {
        sink.give_up();
        return Err(failure);
    }
    sink.finish()?;
    if out.json {
        out.value(&serde_json::json!({ "from": args.source, "to": args.target, "bytes": bytes }));
    } else if !matches!(target, End::Standard) {
        out.talk(&format!("{} to {}", human::bytes(bytes), args.target));
    }
    Ok(0)
}

/// `HOST:PATH` is a file of another machine, as for scp; everything else a file of this one.
fn parse(text: &str) -> End {
    if text == "-" {
        return End::Standard;
    }
    match text.split_once(':') {
        Some((host, path)) if !path.is_empty() && !host.contains('/') => match host.parse() {
            Ok(host) => End::There { host, path: path.to_owned() },
            Err(_) => End::Here(text.into()),
        },
        _ => End::Here(text.into()),
    }
}

/// As [`parse`]; what is no file of this machine may be a job.
fn source(outlast: &Outlast, args: &CpArgs) -> Result<End, Failure> {
    match parse(&args.source) {
        End::Here(path) if !path.exists() => {
            let job = outlast.job(&args.source).map_err(|failure| {
                let said = format!("there is no file and no job {:?}: {}", args.source, failure.message);
                Failure::new(failure.kind, said)
                    .hint("a file of another machine is HOST:PATH, a job HOST/JOB or JOB")
            })?;
            let stream = if args.stderr { Stream::Stderr } else { Stream::Output };
            Ok(End::Output(Box::new(job), stream))
        }
        other @ (End::Standard | End::Here(_) | End::There { .. } | End::Output(..)) => Ok(other),
    }
}

fn file_name(source: &End, args: &CpArgs) -> Result<String, Failure> {
    let of_path = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = match source {
        End::Here(path) => of_path(path),
        End::There { path, .. } => of_path(Path::new(path)),
        End::Output(job, _) => Some(format!("{}.log", job.handle().to_string().replace('/', "-"))),
        End::Standard => None,
    };
    name.ok_or_else(|| Failure::usage(format!("{:?} is a folder: name the file in it", args.target)))
}

/// Hands out all bytes of an end, in order.
fn each(
    outlast: &Outlast,
    gate: &CliGate,
    source: &End,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match source {
        End::Standard => each_of(&mut std::io::stdin().lock(), "standard input", take),
        End::Here(path) => {
            let shown = path.display().to_string();
            let mut file = File::open(path).map_err(|error| cannot("read", &shown, &error))?;
            each_of(&mut file, &shown, take)
        }
        End::Output(job, stream) => {
            let _pass = gate.pass(OrderKind::Read)?;
            pieces(job, *stream, &mut take)
        }
        End::There { host, path } => {
            let argv = ["cat", "--", path].map(ToOwned::to_owned).to_vec();
            let job = start(outlast, gate, *host, argv)?;
            let read = ended(&job).and_then(|()| pieces(&job, Stream::Output, &mut take));
            let _ = outlast.remove(&job);
            read
        }
    }
}

fn each_of(
    from: &mut impl Read,
    what: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut piece = vec![0; INPUT_PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&piece[..n])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot("read", what, &error)),
        }
    }
}

fn pieces(
    job: &Job,
    stream: Stream,
    take: &mut impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed = None;
    job.read_pieces(ReadBytes { stream, max: PIECE, ..ReadBytes::default() }, |piece| {
        let taken = match piece {
            Piece::Bytes(bytes) => take(bytes),
            Piece::Lost { from, to } => {
                Err(Failure::new(Kind::System, format!("bytes {from} to {to} are not in the log any more"))
                    .hint(format!("the rest of it: outlast read {} --raw --since {to}", job.handle())))
            }
        };
        failed = taken.err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Where the bytes go.
enum Sink {
    Standard,
    /// Into a new file beside the target, which takes its place when it is whole.
    Here {
        file: File,
        part: PathBuf,
        target: PathBuf,
    },
    /// Into what is there and is not a file: a device, a pipe.
    Device {
        file: File,
        path: PathBuf,
    },
    There {
        outlast: Outlast,
        job: Box<Job>,
        sent: u64,
    },
}

impl Sink {
    fn open(outlast: &Outlast, gate: &CliGate, target: &End) -> Result<Self, Failure> {
        match target {
            End::Standard => Ok(Self::Standard),
            End::Here(path) => {
                // What a link points to is replaced, not the link.
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let there = std::fs::metadata(&path).ok();
                if there.as_ref().is_some_and(|there| !there.is_file()) {
                    let file = File::options().write(true).open(&path);
                    let file = file.map_err(|error| cannot("write", &path.display().to_string(), &error))?;
                    return Ok(Self::Device { file, path });
                }
                let mut part = path.as_os_str().to_owned();
                part.push(format!(".part-{}", std::process::id()));
                let part = PathBuf::from(part);
                let mode = if there.is_some() { 0o600 } else { 0o666 };
                let file = File::options().write(true).create_new(true).mode(mode).open(&part);
                let file = file.map_err(|error| cannot("write", &part.display().to_string(), &error))?;
                if let Some(there) = there {
                    let set = file.set_permissions(there.permissions());
                    set.map_err(|error| cannot("write", &part.display().to_string(), &error))?;
                }
                Ok(Self::Here { file, part, target: path })
            }
            End::There { host, path } => {
                let argv = ["cp", "--", "/dev/stdin", path].map(ToOwned::to_owned).to_vec();
                let job = Box::new(start(outlast, gate, *host, argv)?);
                Ok(Self::There { outlast: outlast.clone(), job, sent: 0 })
            }
            End::Output(..) => Err(Failure::usage("nothing can be copied into a job")
                .hint("type into it: outlast send JOB TEXT")),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Standard => {
                std::io::stdout().write_all(bytes).map_err(|error| cannot("write", "standard output", &error))
            }
            Self::Here { file, part, .. } => {
                file.write_all(bytes).map_err(|error| cannot("write", &part.display().to_string(), &error))
            }
            Self::Device { file, path } => {
                file.write_all(bytes).map_err(|error| cannot("write", &path.display().to_string(), &error))
            }
            Self::There { job, sent, .. } => {
                *sent += bytes.len() as u64;
                if *sent > MAX_SENT {
                    return Err(Failure::usage(format!(
                        "more than {} are not sent this way",
                        human::bytes(MAX_SENT)
                    ))
                    .hint("use scp or rsync"));
                }
                bytes.chunks(INPUT_PIECE).try_for_each(|piece| match job.send_bytes(piece) {
                    Ok(_) => Ok(()),
                    // Why it ended says more.
                    Err(failure) if failure.kind == Kind::NotRunning => ended(job).and(Err(failure)),
                    Err(failure) => Err(failure),
                })
            }
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Standard | Self::Device { .. } => Ok(()),
            Self::Here { file, part, target } => {
                drop(file);
                std::fs::rename(&part, &target)
                    .map_err(|error| cannot("write", &target.display().to_string(), &error))
            }
            Self::There { outlast, job, .. } => {
                job.send(&Send { eof: true, ..Send::default() }, None)?;
                ended(&job)?;
                outlast.remove(&job).map(|_| ())
            }
        }
    }

    fn give_up(self) {
        match self {
            Self::Standard | Self::Device { .. } => {}
            Self::Here { part, .. } => drop(std::fs::remove_file(part)),
            Self::There { outlast, job, .. } => {
                let _ = job.kill(std::time::Duration::ZERO, &session::current());
                let _ = outlast.remove(&job);
            }
        }
    }
}

/// Starts a program over there, on pipes. Rules of this machine are about it too.
fn start(outlast: &Outlast, gate: &CliGate, host: HostName, argv: Vec<String>) -> Result<Job, Failure> {
    let run = Run::Program(argv);
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let order = Start { run: &run, folder: &folder, env: &Default::default(), fed: false };
    let guard = gate.pass(OrderKind::Start(order))?.guard_request();
    let notify = Some(Vec::new());
    let description = Some("outlast cp".to_owned());
    let spec = JobSpec { streams: Streams::Pipes, guard, notify, description, ..JobSpec::new(run) };
    outlast.on(host)?.start(spec)
}

/// Waits for the end of a program over there.
///
/// # Errors
/// It failed: what it said.
fn ended(job: &Job) -> Result<(), Failure> {
    job.wait(&Wait::for_exit(), None)?;
    let info = job.info_to_show()?;
    if info.state.exit_code() == Some(0) {
        return Ok(());
    }
    let mut said = String::new();
    let _ = pieces(job, Stream::Stderr, &mut |bytes: &[u8]| {
        said.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    });
    let said: String = said.trim().chars().take(MAX_SAID).collect();
    let how = info.state.receipt().map(answer::ending).unwrap_or_default();
    let said = if said.is_empty() { how } else { said };
    Err(Failure::new(Kind::System, format!("{}: {said}", job.handle())))
}

fn cannot(what: &str, which: &str, error: &std::io::Error) -> Failure {
    Failure::system(format!("cannot {what} {which}"), error)
}
