//! The MCP server on its own, for tests and for trying it out: `outlast mcp` without the rest of `outlast`.
#![expect(clippy::print_stderr, reason = "a program speaks to a person")]

use std::process::ExitCode;

use outlast_job::Failure;
use outlast_mcp::{Decision, Options, Profile, serve_http, serve_stdio};

fn main() -> ExitCode {
    outlast_job::keep_if_asked();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("outlast-mcp-testserver: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Failure> {
    let mut options = Options::from_env()?;
    let mut address = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value =
            || arguments.next().ok_or_else(|| Failure::usage(format!("{argument} needs a value")));
        match argument.as_str() {
            "--http" => address = Some(value()?),
            "--profile" => options.profile = Profile::from_name(&value()?)?,
            "--session" => options.session = Some(value()?),
            "--conformance-fixtures" => options.conformance_fixtures = true,
            "--own" => options.own = Some(Decision::from_name(&value()?)?),
            "--no-token" => options.require_token = false,
            other => return Err(Failure::usage(format!("there is no option {other}"))),
        }
    }
    let Some(address) = address else { return serve_stdio(options) };
    let address =
        address.parse().map_err(|error| Failure::usage(format!("{address} is no address: {error}")))?;
    serve_http(address, options, |address, token| {
        eprintln!("outlast-mcp: http://{address}/mcp");
        if let Some(file) = token {
            eprintln!("outlast-mcp: the bearer token is in {}", file.display());
        }
    })
}
