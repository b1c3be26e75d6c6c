//! `outlast mcp`.

use std::io::IsTerminal;
use std::path::PathBuf;

use outlast_cli::McpArgs;
use outlast_job::Failure;
use outlast_mcp::{Decision, Options, Profile, serve_http, serve_stdio};

use crate::output::Output;

pub(super) fn mcp(home: Option<PathBuf>, args: &McpArgs, out: &mut Output) -> Result<i32, Failure> {
    let mut options = Options { home, ..Options::from_env()? };
    if let Some(session) = &args.session {
        options.session = Some(session.clone());
    }
    if let Some(longest) = args.longest_call {
        options.longest_call = longest;
    }
    options.prompted = args.prompted;
    options.call_key.clone_from(&args.call_key);
    if let Some(own) = &args.own {
        options.own = Some(Decision::from_name(own)?);
    }
    options.profile = Profile::from_name(&args.profile)?;
    match args.http {
        None => {
            for_a_program("MCP", "connect an agent: outlast install --list", out);
            serve_stdio(options)?;
        }
        Some(address) => serve_http(address, options, |address, token| {
            out.talk(&format!("outlast: MCP at http://{address}/mcp"));
            if let Some(file) = token {
                out.talk(&format!("outlast: the bearer token is in {}", file.display()));
            }
        })?,
    }
    Ok(0)
}

/// Tells a person who typed this that nothing will come of it.
pub(super) fn for_a_program(what: &str, instead: &str, out: &mut Output) {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        out.talk(&format!(
            "outlast: this speaks {what} with the program that starts it, and waits for it now; {instead}   leave: Ctrl-D"
        ));
    }
}
