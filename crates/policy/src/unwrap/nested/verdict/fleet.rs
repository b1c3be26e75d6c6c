//! What the verbs of a fleet do.

use outlast_cli::{
    FleetArgs, FleetLogArgs, FleetStatusArgs, FleetVerb, NodeArgs, OrderArgs, OrderCancelArgs, OrderListArgs,
    OrderResolveArgs, OrderResultsArgs, OrderShowArgs, OrderVerb, SubmitOrderArgs, TelemetryArgs,
};

use super::super::Words;
use super::{ELSEWHERE, SHOWS, acts, looks, serves};
use crate::decision::Tool;
use crate::unwrap::Inner;

/// It takes orders of others.
pub(super) fn node(args: &NodeArgs) -> Vec<Inner> {
    let NodeArgs { nats: _, name: _, labels: _, slots: _, metrics: _, metrics_token: _, drain: _ } = args;
    serves()
}

/// Who is in a fleet decides where jobs run and who may start them.
pub(super) fn fleet(args: &FleetArgs) -> Vec<Inner> {
    match &args.verb {
        FleetVerb::Status(FleetStatusArgs {}) => looks(Tool::Jobs),
        FleetVerb::Log(FleetLogArgs { job: _, to: None }) => looks(Tool::Read),
        // It writes a file of any name.
        FleetVerb::Log(FleetLogArgs { job: _, to: Some(_) }) => {
            vec![Inner::Tool(Tool::Read), Inner::Opaque(ELSEWHERE)]
        }
        FleetVerb::Init(_) | FleetVerb::Add(_) | FleetVerb::Revoke(_) | FleetVerb::Join(_) => {
            vec![Inner::Opaque(ELSEWHERE)]
        }
    }
}

/// What is ordered runs on another machine, under that machine's policy.
pub(super) fn submit(args: &SubmitOrderArgs, words: Words<'_>) -> Vec<Inner> {
    let SubmitOrderArgs {
        command,
        on: _,
        file: _,
        priority: _,
        retry: _,
        after: _,
        schedule: _,
        name: _,
        cwd: _,
        env: _,
        timeout: _,
        wait: _,
    } = args;
    let mut inner = if command.is_empty() { Vec::new() } else { super::command(command, words) };
    inner.push(Inner::Opaque(ELSEWHERE));
    inner
}

pub(super) fn order(args: &OrderArgs) -> Vec<Inner> {
    match &args.verb {
        OrderVerb::List(OrderListArgs { open: _ })
        | OrderVerb::Show(OrderShowArgs { order: _ })
        | OrderVerb::Results(OrderResultsArgs { follow: _ }) => looks(Tool::Jobs),
        OrderVerb::Cancel(OrderCancelArgs { orders: _ }) => acts(Tool::Kill),
        OrderVerb::Resolve(OrderResolveArgs { order: _, of: _, again: _, give_up: _ }) => {
            vec![Inner::Opaque(ELSEWHERE)]
        }
    }
}

/// It tells others of jobs.
pub(super) fn telemetry(args: &TelemetryArgs) -> Vec<Inner> {
    let TelemetryArgs { once: _, commands: _ } = args;
    vec![Inner::Opaque(SHOWS)]
}
