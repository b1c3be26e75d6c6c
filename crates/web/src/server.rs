//! Connections: accepted within limits, with TLS where that is asked for, and each request checked before it is answered.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outlast_job::{Failure, Outlast};
use outlast_policy::Gate;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::api::{Call, Desk, Said};
use crate::assets::{self, protect};
use crate::feed::Feed;
use crate::guard::{self, Guard, Kind, Refused};
use crate::limits::{BODY_TIMEOUT, Connection, Connections, HEAD_TIMEOUT, MAX_BODY};
use crate::metrics::Metrics;
use crate::options::{Options, Ready};
use crate::rights::Visitor;
use crate::socket;
use crate::store::{Running, Store};

/// How long a browser may take to agree on TLS.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// How many calls are answered at once.
const MAX_CALLS: usize = 16;
/// The most sockets, each of which may show many jobs.
const MAX_SOCKETS: usize = 32;

pub(crate) type Body = BoxBody<Bytes, Infallible>;

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

/// What every connection is served with.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) guard: Guard,
    pub(crate) store: Store,
    pub(crate) desk: Desk,
    pub(crate) feed: Feed,
    metrics: Option<Arc<Metrics>>,
    calls: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
}

/// Serves until the process ends; or, where a server of this home runs already, makes a link to that one and returns. `ready` is
/// called once browsers can connect.
///
/// # Errors
/// An address that is taken or that others can reach without TLS, a certificate that cannot be used, or a home that cannot.
pub fn serve(options: Options, ready: impl FnOnce(&Ready)) -> Result<(), Failure> {
    options.check()?;
    let store = Store::open(options.outlast.home())?;
    let Some(mut running) = store.begin_running()? else {
        return match ticket_for_running(&options.outlast)? {
            Some(there) => {
                ready(&there);
                Ok(())
            }
            None => {
                Err(Failure::usage("a server of this home is about to start or to end").hint("try again"))
            }
        };
    };
    let tls = options.tls.as_ref().map(|(cert, key)| acceptor(cert, key)).transpose()?;
    // A process inside a job may not answer what a person is asked: such a server shows and does no more.
    let read_only = options.read_only || Gate::is_in_a_job();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::system("cannot start the server's threads", error))?;
    runtime.block_on(async {
        let listener = listen(&options, &store).await?;
        let socket =
            listener.local_addr().map_err(|error| Failure::system("the address is unknown", error))?;
        store.remember_port(socket.port())?;
        let address = format!("{}://{}", options.scheme(), public_name(&options, socket));
        let said = Running { socket, address: address.clone(), read_only };
        Store::say_running(&mut running, &said)?;
        let guard = Guard {
            hosts: hosts(&options, socket),
            scheme: options.scheme(),
            cookie: format!("__Host-outlast-{}", socket.port()),
            read_only,
        };
        let metrics = options.metrics_token.as_ref().map(|token| Metrics::new(&options.outlast, token));
        let door = Door {
            guard,
            metrics: metrics.transpose()?.map(Arc::new),
            feed: Feed::start(options.outlast.clone())?,
            desk: Desk { outlast: options.outlast.clone(), pictures: Arc::clone(&options.pictures) },
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
            sockets: Arc::new(Semaphore::new(MAX_SOCKETS)),
            store: store.clone(),
        };
        ready(&link(&store, &said, false)?);
        accept(listener, tls, door).await;
        Ok(())
    })
}

/// A link to the server of this home that runs; none when there is none.
///
/// # Errors
/// When the link cannot be noted.
pub fn ticket_for_running(outlast: &Outlast) -> Result<Option<Ready>, Failure> {
    let store = Store::open(outlast.home())?;
    store.running().map(|running| link(&store, &running, true)).transpose()
}

fn link(store: &Store, running: &Running, already: bool) -> Result<Ready, Failure> {
    let token = store.make_ticket()?;
    Ok(Ready {
        url: format!("{}/#ticket={token}", running.address),
        address: running.address.clone(),
        terminal: assets::terminal_engine(),
        read_only: running.read_only,
        already,
    })
}

/// The port that was asked for; or the one that this home had last, if that is free; or any.
async fn listen(options: &Options, store: &Store) -> Result<TcpListener, Failure> {
    let at = |port| SocketAddr::new(options.bind, port);
    let failed =
        |port: u16, error: std::io::Error| Failure::system(format!("cannot listen on {}", at(port)), error);
    match (options.port, store.port()) {
        (Some(port), _) => TcpListener::bind(at(port)).await.map_err(|error| failed(port, error)),
        (None, Some(port)) => match TcpListener::bind(at(port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0)).await.map_err(|error| failed(0, error)),
        },
        (None, None) => TcpListener::bind(at(0)).await.map_err(|error| failed(0, error)),
    }
}

/// How a browser reaches us.
fn public_name(options: &Options, socket: SocketAddr) -> String {
    let named = options.hosts.first().map(|host| match (options.behind_proxy, host.contains(':')) {
        (true, _) | (_, true) => host.clone(),
        (false, false) => format!("{host}:{}", socket.port()),
    });
    named.unwrap_or_else(|| match socket.ip() {
        ip if ip.is_unspecified() => format!("localhost:{}", socket.port()),
        _ => socket.to_string(),
    })
}

/// All names by which browsers may reach us.
fn hosts(options: &Options, socket: SocketAddr) -> Vec<String> {
    let mut hosts: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned).to_vec();
    match socket.ip() {
        ip if ip.is_unspecified() => {}
        IpAddr::V4(ip) => hosts.push(ip.to_string()),
        IpAddr::V6(ip) => hosts.push(format!("[{ip}]")),
    }
    hosts.extend(options.hosts.iter().cloned());
    hosts
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let bad = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot use {}: {error}", path.display())).hint("it must be PEM")
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad(cert, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(cert, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| bad(cert, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, door: Door) {
    let connections = Arc::new(Connections::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely there are no descriptors left.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (door, connection, tls) = (door.clone(), connections.enter(), tls.clone());
        tokio::spawn(async move {
            // A connection that breaks affects no other.
            tokio::select! {
                () = talk(stream, tls, door, Arc::clone(&connection)) => {}
                () = connection.over() => {}
            }
        });
    }
}

async fn talk(stream: TcpStream, tls: Option<TlsAcceptor>, door: Door, connection: Arc<Connection>) {
    match tls {
        None => serve_one(stream, door, connection).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(TLS_TIMEOUT, tls.accept(stream)).await {
                serve_one(stream, door, connection).await;
            }
        }
    }
}

async fn serve_one<S>(stream: S, door: Door, connection: Arc<Connection>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request| {
        let (door, connection) = (door.clone(), Arc::clone(&connection));
        async move {
            let mut response = respond(&door, &connection, request).await;
            protect(response.headers_mut());
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(64 << 10);
    let _ = builder.serve_connection(TokioIo::new(stream), answer).with_upgrades().await;
}

async fn respond(door: &Door, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<Body> {
    if let Err(refused) = door.guard.host(request.headers()) {
        return refuse(refused);
    }
    match (request.method().clone(), request.uri().path()) {
        (Method::POST, "/api/enter") => enter(door, request).await,
        (Method::POST, "/api") => call(door, connection, request).await,
        (Method::GET, "/ws") => open_socket(door, connection, request),
        (Method::GET, "/metrics") => metrics(door, request.headers()).await,
        (Method::GET | Method::HEAD, path) => assets::answer(path, request.headers())
            .unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "there is nothing here")),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "this is not how it is asked for"),
    }
}

/// A browser comes in with what was in the fragment of its link.
async fn enter(door: &Door, request: Request<Incoming>) -> Response<Body> {
    if let Err(refused) = door.guard.own_page(request.headers(), Kind::Fetch) {
        return refuse(refused);
    }
    let body = match read_json(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let admitted = match (body["ticket"].as_str(), body["share"].as_str()) {
        (Some(ticket), None) => door.store.use_ticket(ticket),
        (None, Some(share)) => door.store.use_share(share),
        (Some(_), Some(_)) | (None, None) => Ok(None),
    };
    match admitted {
        Ok(Some(admitted)) => {
            let mut response = answer(StatusCode::OK, &json!({ "key": admitted.key }));
            if let Ok(cookie) = HeaderValue::from_str(&door.guard.set_cookie(&admitted.cookie)) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        Ok(None) => refuse(Refused::Unknown),
        Err(failure) => failed(&failure),
    }
}

/// A scraper asks.
async fn metrics(door: &Door, headers: &http::HeaderMap) -> Response<Body> {
    let Some(metrics) = door.metrics.clone() else {
        return plain(StatusCode::NOT_FOUND, "there are no metrics: outlast web --metrics-token FILE");
    };
    if !metrics.admits(headers) {
        return plain(StatusCode::UNAUTHORIZED, "this needs the token: Authorization: Bearer TOKEN");
    }
    let Ok(_place) = door.calls.acquire().await else { return refuse(Refused::Unknown) };
    let outlast = door.desk.outlast.clone();
    match tokio::task::spawn_blocking(move || metrics.text(&outlast)).await {
        Ok(text) => {
            let mut response = Response::new(full(text));
            let kind = HeaderValue::from_static("text/plain; version=0.0.4");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the jobs could not be counted"),
    }
}

/// A call of the page.
async fn call(door: &Door, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<Body> {
    let visitor = match known(door, request.headers(), Kind::Fetch) {
        Ok(visitor) => visitor,
        Err(refused) => return refuse(refused),
    };
    if !connection.authenticated() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    }
    let call = match read_json(request).await.map(serde_json::from_value::<Call>) {
        Ok(Ok(call)) => call,
        Ok(Err(_)) => return plain(StatusCode::BAD_REQUEST, "this is not a call"),
        Err(response) => return response,
    };
    let Ok(_place) = door.calls.acquire().await else { return refuse(Refused::Unknown) };
    let desk = door.desk.clone();
    match tokio::task::spawn_blocking(move || desk.answer(&visitor, call)).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(failure)) => failed(&failure),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the call could not be answered"),
    }
}

/// Who asks: our own page, with a cookie and a key that belong together.
fn known(door: &Door, headers: &http::HeaderMap, kind: Kind) -> Result<Visitor, Refused> {
    door.guard.own_page(headers, kind)?;
    let key = match kind {
        Kind::Fetch => headers.get(guard::KEY).and_then(|key| key.to_str().ok()),
        Kind::Socket => guard::key_of_socket(headers),
    };
    door.guard.visitor(headers, key.ok_or(Refused::Unknown)?, &door.store)
}

fn open_socket(door: &Door, connection: &Arc<Connection>, mut request: Request<Incoming>) -> Response<Body> {
    let visitor = match known(door, request.headers(), Kind::Socket) {
        Ok(visitor) => visitor,
        Err(refused) => return refuse(refused),
    };
    let Some(accept) = socket::accept_key(request.headers()) else {
        return plain(StatusCode::UPGRADE_REQUIRED, "this is for sockets");
    };
    let (true, Ok(place)) = (connection.authenticated(), Arc::clone(&door.sockets).try_acquire_owned())
    else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    };
    let headers = request.headers().clone();
    let upgraded = hyper::upgrade::on(&mut request);
    let (door, connection) = (door.clone(), Arc::clone(connection));
    tokio::spawn(async move {
        if let Ok(stream) = upgraded.await {
            let still = move |door: &Door| known(door, &headers, Kind::Socket).is_ok();
            socket::serve(TokioIo::new(stream), door, visitor, still).await;
        }
        drop((place, connection));
    });
    let mut response = Response::new(full(b"" as &[u8]));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answered = response.headers_mut();
    answered.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answered.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answered.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(guard::PROTOCOL));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        answered.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

async fn read_json(request: Request<Incoming>) -> Result<Value, Response<Body>> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind != Some(b"application/json") {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "calls are JSON"));
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(request.into_body(), MAX_BODY).collect()).await {
        Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes())
            .map_err(|_| plain(StatusCode::BAD_REQUEST, "this is not JSON")),
        Ok(Err(_)) => Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "the call is too long, or broke off")),
        Err(_) => Err(plain(StatusCode::REQUEST_TIMEOUT, "the call took too long to arrive")),
    }
}

fn refuse(refused: Refused) -> Response<Body> {
    let (status, why) = match refused {
        Refused::Host => {
            (StatusCode::MISDIRECTED_REQUEST, "this server has another name; see outlast web --host")
        }
        Refused::Elsewhere => (StatusCode::FORBIDDEN, "only its own page may ask this"),
        Refused::Unknown => (StatusCode::UNAUTHORIZED, "get a link to come in: outlast web"),
    };
    let mut response = plain(status, why);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn failed(failure: &Failure) -> Response<Body> {
    use outlast_job::Kind as Of;
    let status = match failure.kind {
        Of::Usage => StatusCode::BAD_REQUEST,
        Of::NoSuchJob => StatusCode::NOT_FOUND,
        Of::NotRunning | Of::Busy => StatusCode::CONFLICT,
        Of::Denied => StatusCode::FORBIDDEN,
        Of::Unreachable => StatusCode::BAD_GATEWAY,
        Of::CannotStart | Of::BadHome | Of::UnknownFormat | Of::OutcomeUnknown | Of::Keeper | Of::System => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    answer(status, &json!({ "error": Said::from(failure) }))
}

fn answer(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(full(why));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
