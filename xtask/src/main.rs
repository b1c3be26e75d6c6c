//! Chores of the repository. `cargo xtask record NAME [-- COMMAND...]` makes a recording in
//! `recordings/NAME`; `cargo xtask bench` measures the built program, `cargo xtask faults` tries to break it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod assets;
mod attack;
mod bench;
mod book;
mod check_targets;
mod choice;
mod dist;
mod esctest;
mod faults;
mod jobs;
mod museum;
mod outcomes;
mod page;
mod record;
mod record_outcomes;
mod record_wire;
mod recipe;
mod release;
mod sdk;
mod shots;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [SUITE...]            all tests, each suite within its budget, and a table of what was left out; --full
                                       for everything at full length, --fetch to install Debian's packages first (as
                                       root), --list for the suites
cargo xtask record NAME                run recordings/NAME/recipe again
cargo xtask record NAME -- COMMAND...  make a new recording of a command that needs no typing
cargo xtask record --all               run every recipe again
cargo xtask assets                     fetch xterm.js for the web view; a build embeds it if it is there
cargo xtask shots                      make the pictures of the web view in the guide again, with a real browser
cargo xtask web-figures                measure the web view in a real browser, and write docs/web-figures.md; JOBS, SECONDS, LOG_MIB and
                                       MOMENTS_MIB make it smaller
cargo xtask book                       build the book of docs into target/book, and look for dead links in it
cargo xtask dist [PLATFORM...]         everything that is published, into target/dist: static binaries in tarballs, .deb, npm packages,
                                       wheels, .mcpb, plugins, sums; --check installs each in an empty prefix and tries it,
                                       --twice builds again from another folder and compares, --no-build takes the binaries
                                       that are there, --debug-binary packs the debug build, only to try the packages
cargo xtask release                    walk through the checklist of a release, and say what is missing
cargo xtask check-targets [TARGET...]  what compiles for which target
cargo xtask sdk                        test the clients for Python and TypeScript with the debug build
cargo xtask record-outcomes SET [RUN]  run real tools on small projects again: recordings/outcomes/SET.recipes
cargo xtask outcomes                   read all of them, and write docs/outcomes.md
cargo xtask workflows                  write docs/guide/workflows.md by doing what it describes
cargo xtask machines                   cut links to five hosts in network namespaces, and write docs/machines.md (as root)
cargo xtask fleet [ORDERS SECONDS HOSTS]
                                       mistreat a fleet with real brokers in network namespaces, play a large one, and write the
                                       measured part of docs/fleet.md (as root)
cargo xtask record-wire [NAME...]      record again what 0.1.0 says to its keepers: crates/outlast/tests/museum/wire
cargo xtask bench [MEASURE...]         measure the built program beside a bare read loop; --quick for a look,
                                       --write to put a whole run's tables and curves into docs/performance.md;
                                       --against PROGRAM (or 0.1.0) measures two versions turn about
cargo xtask bench-peers [OPTION...]    measure the built program beside other tools, with the harness that OUTLAST_PEER_BENCH names;
                                       options are the harness's own, --write puts its tables into docs/performance.md
cargo xtask faults [FAULT...]          kill, fill up and flood the built program a few thousand times, and count what
                                       is lost; --write puts the table of a whole run into docs/faults.md, --sample tries
                                       some of them a few times with the debug build, --part 5 tries each a fifth as often
cargo xtask soak --minutes N           random jobs while everything is killed, the disk fills up and the clock jumps; --write puts
                                       counts and the plot of memory into docs/faults.md
cargo xtask attack                     try all evasions, escapes and leaks, and count what gets through; --write puts the
                                       table into docs/attacks.md
cargo xtask esctest FOLDER [OPTION...] run esctest2 against our screen, and print what passed by group; FOLDER has its
                                       esctest.py, options are the suite's own

A recipe is a line each: `size 80x24`, `file NAME TEXT`, `run COMMAND`, `wait TEXT` (until it is on the screen),
`type TEXT`, `line TEXT` (with Enter), `key NAME`, `resize 60x20`. In texts, \\n is a line end.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["record", "--all"] => record::all(),
        ["record", name] => record::again(name),
        ["record", name, "--", command @ ..] if !command.is_empty() => record::new(name, command),
        ["assets"] => assets::run(),
        ["shots"] => shots::run(),
        ["web-figures"] => shots::figures(),
        ["book"] => book::run(),
        ["dist", options @ ..] => dist::run(options),
        ["sdk"] => sdk::run(),
        ["check-targets", targets @ ..] => check_targets::run(targets),
        ["release"] => release::run(),
        ["outcomes"] => outcomes::run(),
        ["record-outcomes", set, names @ ..] => record_outcomes::run(set, names),
        ["workflows"] => workflows(),
        ["machines"] => machines(),
        ["fleet", sizes @ ..] => fleet(sizes),
        ["record-wire", names @ ..] => record_wire::run(names),
        ["test", options @ ..] => test::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["faults", options @ ..] => faults::run(options),
        ["soak", options @ ..] => faults::soak::run(options),
        ["attack", options @ ..] => attack::run(options),
        ["esctest", folder, options @ ..] => esctest::run(folder, options),
        // What both run as jobs.
        ["bench-peers", words @ ..] => bench::peers::run(words),
        ["emit", kind, bytes] => bench::emit::emit(kind, bytes),
        ["mark"] => bench::emit::mark(),
        ["mark-once", silence] => bench::emit::mark_once(silence),
        ["ask", kind] => bench::told::ask(kind),
        ["start-many", program, home, count, argv @ ..] => {
            bench::large::start_many(program, home, count, argv)
        }
        ["count", lines, burst, pause] => jobs::count(lines, burst, pause),
        ["soup", seed] => jobs::soup(seed),
        ["knock", socket] => jobs::knock(socket),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `docs/guide/workflows.md` by doing what it describes.
fn workflows() -> Result<(), String> {
    written_by("clients/workflows.py", "docs/guide/workflows.md")
}

/// Writes `docs/machines.md` by cutting links.
fn machines() -> Result<(), String> {
    written_by("clients/machines.py", "docs/machines.md")
}

/// Writes the measured part of `docs/fleet.md`, by mistreating a fleet.
fn fleet(sizes: &[&str]) -> Result<(), String> {
    const MEASURED: &str = "\n## Measured\n";
    let root = test::tools::workspace();
    test::tools::fetch_nats_server(&root)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = std::process::Command::new(cargo)
        .args(["build", "-p", "outlast", "-p", "outlast-fleet", "--bins", "--examples"])
        .status();
    if !built.map_err(|error| error.to_string())?.success() {
        return Err("the program does not build".into());
    }
    let mut command = std::process::Command::new("python3");
    command.arg(root.join("clients/fleet.py")).arg(root.join("target/debug/outlast"));
    command
        .arg(root.join("target/tools/nats/bin/nats-server"))
        .arg(root.join("target/debug/examples/fleet_hosts"));
    let output = command
        .args(sizes)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let page = root.join("docs/fleet.md");
    let text = std::fs::read_to_string(&page).map_err(|error| error.to_string())?;
    let before = text.split(MEASURED).next().unwrap_or_default();
    let measured = String::from_utf8_lossy(&output.stdout);
    println!("{measured}");
    if !output.status.success() {
        return Err(format!("clients/fleet.py: {}", output.status));
    }
    std::fs::write(&page, format!("{before}{MEASURED}\n{measured}")).map_err(|error| error.to_string())
}

/// Writes a page that a script prints when it is given the built program.
fn written_by(script: &str, page: &str) -> Result<(), String> {
    let root = test::tools::workspace();
    let mut command = std::process::Command::new("python3");
    command.arg(root.join(script)).arg(root.join("target/debug/outlast"));
    let output =
        command.stderr(std::process::Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{script}: {}", output.status));
    }
    std::fs::write(root.join(page), output.stdout).map_err(|error| error.to_string())
}
