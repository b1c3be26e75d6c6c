//! Processes of ours that are killed.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::Tally;
use super::arena::{self, Arena, grown_to, send};
use crate::bench::{Server, own_program};

const LINES: u64 = 1500;
/// Enough to be still at it when the last of twenty has started.
const LONGER: u64 = 6000;

pub(super) fn keeper(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(300), ..Tally::default() };
    let mut takeovers = 0;
    for _ in 0..tally.tried {
        let job = arena.counting(LINES)?;
        // Somebody waits meanwhile, and must be answered all the same.
        let waiter = arena.cli(&["wait", &job.handle().to_string(), "--exit"])?;
        grown_to(&job, arena.below(14_000));
        send(&job, "keeper", Signal::KILL);
        arena.check(&job, LINES, &mut tally);
        let mut waiter = waiter;
        tally.hung += u64::from(!arena::ended_in_time(&mut waiter));
        takeovers += u64::from(job.info().is_ok_and(|info| info.takeovers > 0));
    }
    tally.note = format!("{takeovers} taken over by their heirs, the others had ended");
    Ok(tally)
}

pub(super) fn keeper_at_end(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(300), ..Tally::default() };
    for _ in 0..tally.tried {
        let job = arena.counting(40)?;
        grown_to(&job, 380);
        std::thread::sleep(Duration::from_micros(arena.below(4000)));
        send(&job, "keeper", Signal::KILL);
        arena.check(&job, 40, &mut tally);
    }
    Ok(tally)
}

pub(super) fn client(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for _ in 0..arena.times(50) {
        let job = arena.counting(LINES)?;
        let name = job.handle().to_string();
        let clients = [
            arena.cli(&["wait", &name, "--pattern", "never"])?,
            arena.cli(&["logs", "-f", &name])?,
            arena.cli(&["send", &name, "x", "--pattern", "never"])?,
            arena.cli(&["attach", &name, "--read-only"])?,
        ];
        for mut client in clients {
            tally.tried += 1;
            std::thread::sleep(Duration::from_micros(arena.below(15_000)));
            let _ = client.kill();
            let _ = client.wait();
        }
        arena.check(&job, LINES, &mut tally);
    }
    Ok(tally)
}

pub(super) fn server(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(100), ..Tally::default() };
    let mut untold = 0;
    for round in 0..tally.tried {
        let mut server = Server::start(&arena.program, &arena.home())?;
        let command = format!("'{}' count {LINES} 20 2000", own_program());
        server.send(
            "run_shell_command",
            &json!({"command": command, "wait_for_output_seconds": 40, "name": format!("r{round}")}),
        )?;
        let job = (0..2000)
            .find_map(|_| {
                std::thread::sleep(Duration::from_millis(1));
                arena.outlast.job(&format!("r{round}")).ok()
            })
            .ok_or("the job did not start")?;
        grown_to(&job, arena.below(14_000));
        drop(server);
        arena.check(&job, LINES, &mut tally);
        let mut next = Server::start(&arena.program, &arena.home())?;
        let listed = next.call("jobs", &json!({}))?;
        let known = listed["jobs"]
            .as_array()
            .is_some_and(|jobs| jobs.iter().any(|one| one["handle"] == json!(job.handle())));
        untold += u64::from(!known);
    }
    tally.note = format!("{untold} unknown to the next server");
    tally.lost_receipts += untold;
    Ok(tally)
}

pub(super) fn both(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(20), ..Tally::default() };
    let mut lost = 0;
    for _ in 0..tally.tried {
        let jobs: Vec<_> = (0..20).map(|_| arena.counting(LONGER)).collect::<Result<_, _>>()?;
        let victim = usize::try_from(arena.below(20)).unwrap_or(0);
        grown_to(&jobs[victim], arena.below(40_000));
        send(&jobs[victim], "heir", Signal::STOP);
        send(&jobs[victim], "keeper", Signal::KILL);
        send(&jobs[victim], "heir", Signal::KILL);
        for (i, job) in jobs.iter().enumerate() {
            if i == victim {
                // It may have ended before; if it was lost, what is there must be there without a gap.
                tally.hung += u64::from(!arena::waited_for_end(job));
                lost += u64::from(job.info().is_ok_and(|info| info.state.name() == "lost"));
                let log = arena::log(job);
                let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines = log[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
                tally.lost_bytes += arena::missing(&log[..whole], lines);
            } else {
                arena.check(job, LONGER, &mut tally);
            }
        }
    }
    tally.note =
        format!("{lost} lost, each with a whole log up to then; {} others untouched", tally.tried * 19);
    Ok(tally)
}
