//! Serves one client over standard input and output.

use std::sync::Arc;
use std::time::Duration;

use outlast_job::Failure;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::options::Options;
use crate::sent::{Settling, Unsent};
use crate::server::Server;
use crate::sockets;
use crate::unreadable::Readable;

/// How long threads that still wait on a job may take to notice that the client has left.
const GOODBYE: Duration = Duration::from_millis(200);

/// How long a thread that has nothing to do stays: calls that wait have none, so only a burst of calls leaves many.
pub(crate) const IDLE_THREAD: Duration = Duration::from_secs(2);

/// Serves MCP on standard input and output until the client hangs up. Jobs go on.
///
/// # Errors
/// When the home can't be used, or the client speaks no MCP.
pub fn serve_stdio(options: Options) -> Result<(), Failure> {
    // Asked for at once: later the agent may be gone.
    let unsent = Arc::new(Unsent::at_stdout());
    let agent = outlast_job::session::agent_at_stdin();
    let server = Server::new(options)?.for_agent(agent).on(Arc::clone(&unsent));
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let (reader, writer) = ends();
        // Its own limit is ours, and ours is answered.
        let inner = AsyncRwTransport::new(Readable::new(reader), writer).with_max_line_length(usize::MAX);
        let engine = Arc::clone(server.engine());
        let transport = Settling { inner, engine, unsent, taken: 0, held: None };
        match server.serve(transport).await {
            Ok(running) => running
                .waiting()
                .await
                .map(|_| ())
                .map_err(|error| Failure::system("the server broke off", error)),
            // A client that leaves before it says anything wanted nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Failure::system("the client could not be understood", error)),
        }
    });
    runtime.shutdown_timeout(GOODBYE);
    served
}

/// What the client writes to and reads from: pipes, sockets, or anything else.
fn ends() -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
    if let Some((reader, writer)) = sockets::of_stdio() {
        return (Box::new(reader), Box::new(writer));
    }
    let (reader, writer) = stdio_pipes();
    (Box::new(reader), Box::new(writer))
}

/// One thread at a time for the protocol. A call that may block goes on in the thread that has read it, and the protocol gets
/// another: so nobody has to be woken for the call.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .thread_keep_alive(IDLE_THREAD)
        .build()
        .map_err(|error| Failure::system("the server can't start", error))
}
