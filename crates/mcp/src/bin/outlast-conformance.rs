//! The MCP server with what the public conformance suite asks for, over HTTP: `outlast-conformance mcp --http ADDRESS`.
#![expect(clippy::print_stderr, reason = "a program speaks to a person")]

use std::process::ExitCode;

use outlast_job::Failure;
use outlast_mcp::{Options, serve_http};

fn main() -> ExitCode {
    outlast_job::keep_if_asked();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("outlast-conformance: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mcp, http, address] = arguments.as_slice() else {
        return Err(Failure::usage("usage: outlast-conformance mcp --http ADDRESS"));
    };
    if (mcp.as_str(), http.as_str()) != ("mcp", "--http") {
        return Err(Failure::usage("usage: outlast-conformance mcp --http ADDRESS"));
    }
    let address =
        address.parse().map_err(|error| Failure::usage(format!("{address} is not an address: {error}")))?;
    let options = Options::from_env()?.with_conformance_fixtures()?;
    serve_http(address, options, |address, _token| eprintln!("outlast: MCP at http://{address}/mcp"))
}
