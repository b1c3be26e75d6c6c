//! Serves any number of clients over streamable HTTP, on this machine only.
//!
//! A client that can reach the port could run commands. So each request must carry the token, must be
//! addressed to this host, and must not come from a page of another origin. Priming events are off because
//! Gemini CLI breaks on them. A request that is being answered is never cut off for being silent: a call may
//! take long.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use outlast_job::Failure;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::connections::{Connection, Connections};
use crate::http_sessions::Sessions;
use crate::options::Options;
use crate::server::Server;
use crate::stdio::IDLE_THREAD;

/// Where clients find us.
const PATH: &str = "/mcp";
/// The largest request: a megabyte of input, with room for its escapes.
const MAX_REQUEST_BYTES: usize = 16 << 20;
/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes that an unauthenticated client may send before we close the connection.
const MAX_STRANGER_BODY_BYTES: usize = 64 << 10;
/// How long such a client may take to send them.
const STRANGER_BODY_TIMEOUT: Duration = Duration::from_millis(250);
/// The header that names a session, in the older protocol.
const SESSION: &str = "mcp-session-id";
/// In the home.
const TOKEN_FILE: &str = "mcp-token";

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// What every connection is served with.
#[derive(Clone)]
struct Door {
    service: Service,
    sessions: Arc<Sessions>,
    token: Option<Arc<str>>,
}

/// Serves MCP over HTTP until the process ends. `ready` gets the address and the token's file once clients
/// can connect.
///
/// # Errors
/// If the address is not on this machine or is taken, or the home cannot be used.
pub fn serve_http(
    address: SocketAddr,
    options: Options,
    ready: impl FnOnce(SocketAddr, Option<&Path>),
) -> Result<(), Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!("{address} is not on this machine alone"))
            .hint("anyone who can reach it could run commands: use 127.0.0.1"));
    }
    let (require_token, session_idle) = (options.require_token, options.session_idle);
    let server = Server::new(options)?;
    let (token, file) = match require_token {
        true => {
            let (token, file) = token(server.home().path())?;
            (Some(Arc::<str>::from(token)), Some(file))
        }
        false => (None, None),
    };
    let manager = session_manager();
    let sessions = Arc::new(Sessions::new(Arc::clone(&manager), session_idle));
    let door = Door { service: service(server, manager), sessions: Arc::clone(&sessions), token };
    let connections = Arc::new(Connections::new());
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|error| Failure::system(format!("{address} can't be listened on"), error))?;
        let bound =
            listener.local_addr().map_err(|error| Failure::system("the address is unknown", error))?;
        ready(bound, file.as_deref());
        tokio::spawn(sessions.close_idle());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Most likely there are no descriptors left.
                connections.make_room();
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let door = door.clone();
            let connection = Arc::new(connections.enter());
            tokio::spawn(async move {
                let asked = Arc::clone(&connection);
                let answer = service_fn(move |request| respond(door.clone(), Arc::clone(&asked), request));
                let served =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                // A connection that breaks affects no other.
                tokio::select! {
                    _ = served => {}
                    () = connection.over() => {}
                }
            });
            // Read it before accepting the next one: in a rush of unauthenticated connections it may have the
            // token.
            tokio::task::yield_now().await;
        }
    })
}

/// One thread for all clients; what blocks gets its own.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(IDLE_THREAD)
        .build()
        .map_err(|error| Failure::system("the server can't start", error))
}

fn session_manager() -> Arc<LocalSessionManager> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = None;
    // A session in use may be silent for long: see `http_sessions`.
    sessions.session_config.keep_alive = None;
    Arc::new(sessions)
}

fn service(server: Server, sessions: Arc<LocalSessionManager>) -> Service {
    let config = StreamableHttpServerConfig::default().with_sse_retry(None).with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    StreamableHttpService::new(move || Ok(server.for_connection()), sessions, config)
}

async fn respond(
    door: Door,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if !door.token.as_ref().is_none_or(|token| carries(&request, token)) {
        return Ok(turn_away(request).await);
    }
    if request.uri().path().trim_end_matches('/') != PATH {
        return Ok(refuse(StatusCode::NOT_FOUND, "there is only /mcp here"));
    }
    let Some(busy) = connection.begin() else {
        return Ok(refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests at once: try again in a moment",
        ));
    };
    let (head, body) = request.into_parts();
    // Read it completely before answering: closing a connection with unread bytes may lose the answer.
    let body = match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_REQUEST_BYTES).collect()).await
    {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or broke off"));
        }
        Err(_) => return Ok(refuse(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive")),
    };
    let session = named_session(&head.headers).map(ToOwned::to_owned);
    let ends = head.method == Method::DELETE;
    let mut in_use = session.as_deref().and_then(|session| door.sessions.begin(session));
    let response = door.service.handle(Request::from_parts(head, Full::new(body))).await;
    match (&session, named_session(response.headers())) {
        (Some(session), _) if ends => door.sessions.ended(session),
        (None, Some(opened)) => {
            in_use = door.sessions.opened(opened).await;
            if in_use.is_none() {
                let why = "too many sessions are in use: end one of them, or try again later";
                return Ok(refuse(StatusCode::SERVICE_UNAVAILABLE, why));
            }
        }
        (Some(_) | None, _) => {}
    }
    // Both last as long as the answer, which may be a stream.
    Ok(response.map(|body| {
        body.map_frame(move |frame| {
            let _until_here = (&busy, &in_use);
            frame
        })
        .boxed()
    }))
}

/// Answers a client without the token, and closes the connection. The rest of a short body is still read,
/// because closing a connection with unread bytes may lose the answer; a long or slow one is not waited for.
async fn turn_away(request: Request<Incoming>) -> Response<Body> {
    let body = Limited::new(request.into_body(), MAX_STRANGER_BODY_BYTES).collect();
    let _ = tokio::time::timeout(STRANGER_BODY_TIMEOUT, body).await;
    let mut refused = refuse(
        StatusCode::UNAUTHORIZED,
        "send the token: Authorization: Bearer <token>; it is in the file that the server named when it started",
    );
    let headers = refused.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    refused
}

fn named_session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

fn carries(request: &Request<Incoming>, token: &str) -> bool {
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent
        .and_then(|sent| sent.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    sent.is_some_and(|(_, sent)| same(sent.trim().as_bytes(), token.as_bytes()))
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn refuse(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

/// The token of a home, created if there is none: clients store it in their settings.
fn token(home: &Path) -> Result<(String, PathBuf), Failure> {
    let path = home.join(TOKEN_FILE);
    let failed = |error: std::io::Error| Failure::system(format!("{} can't be used", path.display()), error);
    let mut fresh = std::fs::OpenOptions::new();
    fresh
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    match fresh.open(&path) {
        Ok(mut file) => {
            let token = random()?;
            std::io::Write::write_all(&mut file, token.as_bytes()).map_err(failed)?;
            Ok((token, path))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = std::fs::symlink_metadata(&path).map_err(failed)?;
            let text = std::fs::read_to_string(&path).map_err(failed)?.trim().to_owned();
            let open = std::os::unix::fs::MetadataExt::mode(&meta) & 0o077 != 0;
            if open || !meta.is_file() || text.len() < 32 {
                return Err(Failure::usage(format!(
                    "{} does not hold a token of ours, or others can read it",
                    path.display()
                ))
                .hint("remove it, and start again: a new one is made"));
            }
            Ok((text, path))
        }
        Err(error) => Err(failed(error)),
    }
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0_u8; 32];
    outlast_job::system::random(&mut bytes)
        .map_err(|error| Failure::system("cannot get random numbers", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
