//! Serves any number of clients over streamable HTTP, on this machine only.
//!
//! Whoever can reach the port could run commands: so each request must carry the token, come from a host that is
//! this one, and from no page of another origin. Priming events are off because Gemini CLI breaks on them, and
//! sessions do not die of silence, because a call may well be silent.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use outlast_job::Failure;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::options::Options;
use crate::server::Server;

/// Where clients find us.
const PATH: &str = "/mcp";
/// The longest request: a megabyte of input, and room for its escapes.
const LONGEST_REQUEST: usize = 16 << 20;
/// How much a stranger may send before we hang up.
const STRANGER: usize = 64 << 10;
/// Below the home.
const TOKEN_FILE: &str = "mcp-token";

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// Serves MCP over HTTP until the process is ended. `ready` is told the address and the token's file once clients
/// can connect.
///
/// # Errors
/// When the address is not on this machine or is taken, or the home can't be used.
pub fn serve_http(
    address: SocketAddr,
    options: Options,
    ready: impl FnOnce(SocketAddr, Option<&Path>),
) -> Result<(), Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!("{address} is not on this machine alone"))
            .hint("whoever can reach it could run commands: use 127.0.0.1"));
    }
    let require_token = options.require_token;
    let server = Server::new(options)?;
    let (token, file) = match require_token {
        true => {
            let (token, file) = token(server.home().path())?;
            (Some(Arc::<str>::from(token)), Some(file))
        }
        false => (None, None),
    };
    let service = service(server);
    crate::stdio::runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|error| Failure::system(format!("{address} can't be listened on"), error))?;
        let bound =
            listener.local_addr().map_err(|error| Failure::system("the address is unknown", error))?;
        ready(bound, file.as_deref());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most likely: others must end first.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let (service, token) = (service.clone(), token.clone());
            tokio::spawn(async move {
                let answer = service_fn(move |request| respond(service.clone(), token.clone(), request));
                // A connection that breaks off concerns nobody else.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    })
}

fn service(server: Server) -> Service {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = None;
    sessions.session_config.keep_alive = None;
    let config = StreamableHttpServerConfig::default().with_sse_retry(None).with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    StreamableHttpService::new(move || Ok(server.for_connection()), Arc::new(sessions), config)
}

async fn respond(
    service: Service,
    token: Option<Arc<str>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if request.uri().path().trim_end_matches('/') != PATH {
        return Ok(refuse(StatusCode::NOT_FOUND, "there is only /mcp here"));
    }
    let known = token.is_none_or(|token| carries(&request, &token));
    let (head, body) = request.into_parts();
    // Read to its end before any answer: a connection closed on unread bytes may lose the answer with them.
    let limit = if known { LONGEST_REQUEST } else { STRANGER };
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or broke off")),
    };
    if !known {
        let mut refused = refuse(
            StatusCode::UNAUTHORIZED,
            "send the token: Authorization: Bearer <token>; it is in the file that the server named when it started",
        );
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        return Ok(refused);
    }
    Ok(service.handle(Request::from_parts(head, Full::new(body))).await)
}

fn carries(request: &Request<Incoming>, token: &str) -> bool {
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent
        .and_then(|sent| sent.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    sent.is_some_and(|(_, sent)| same(sent.trim().as_bytes(), token.as_bytes()))
}

/// Takes as long for a near miss as for a wild guess.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn refuse(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

/// The token of a home, made when there is none: clients keep it in their settings.
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
                    "{} is no token of ours, or others can read it",
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
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if got != Ok(bytes.len()) {
        return Err(Failure::system("no random numbers can be had", "getrandom"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
