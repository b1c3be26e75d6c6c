//! An ACP agent whose turns are shell work.
//!
//! A prompt is a command line. It becomes a job and a tool call. Lines of output are updates of that call,
//! during the turn and after it, until the job has really ended. Handlers run inside the SDK's dispatch loop
//! and return at once; a turn and a stream of lines each have a thread.

mod commands;
mod permission;
mod replay;
mod streams;
mod turn;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, LoadSessionResponse,
    NewSessionRequest, NewSessionResponse, PromptRequest, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionId, SessionListCapabilities, SessionNotification,
    SessionResumeCapabilities, SessionUpdate,
};
use agent_client_protocol::{
    Agent, Error, LineDirection, Stdio, on_receive_notification, on_receive_request,
};
use outlast_job::{Failure, Handle, Outlast};
use outlast_policy::{Decision, Door, Gate};

use turn::Turn;

use crate::shown::Shown;

/// How many updates may wait for a client that does not read; beyond that, streams batch lines.
const MAX_QUEUED_UPDATES: usize = 64;

/// What all sessions share.
#[derive(Debug)]
struct Shared {
    outlast: Outlast,
    /// Who may do what.
    gate: Gate,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Where it is written down what was shown.
    folder: Arc<OwnedFd>,
    /// The client shows terminals of the agent's own.
    terminals: AtomicBool,
    /// How many updates wait to be sent.
    queued: Arc<AtomicUsize>,
    calls: AtomicU64,
}

/// One conversation.
#[derive(Debug)]
struct Session {
    id: SessionId,
    folder: PathBuf,
    closed: AtomicBool,
    turns: Mutex<Vec<Arc<Turn>>>,
    /// Jobs whose lines are being sent.
    streaming: Mutex<Vec<Handle>>,
    /// How far.
    shown: Shown,
}

/// A session's client, for a thread that sends to it.
#[derive(Clone, Debug)]
struct Client {
    id: SessionId,
    /// Who owns the session's jobs.
    owner: String,
    connection: ConnectionTo<agent_client_protocol::Client>,
    runtime: tokio::runtime::Handle,
    shared: Arc<Shared>,
    session: Arc<Session>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner of a session's jobs.
fn owner(id: &SessionId) -> String {
    format!("acp:{}", id.0)
}

/// Serves ACP on stdin and stdout until the client disconnects. Jobs continue.
///
/// # Errors
/// If the policy does not load, or the connection breaks.
pub fn serve(outlast: Outlast) -> Result<(), Failure> {
    // What is sent may be read by a model, so known secrets are hidden in it.
    let outlast = outlast.masked();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("the agent can't start", error))?;
    // Prompts come from a person at an editor: they are not asked about their own jobs.
    let gate = Gate::open(outlast.home(), Door::Acp)?.own(Some(Decision::Allow));
    let shared = Arc::new(Shared {
        folder: Arc::new(crate::folder::open(outlast.home())?),
        outlast,
        gate,
        sessions: Mutex::default(),
        terminals: AtomicBool::new(false),
        queued: Arc::default(),
        calls: AtomicU64::new(0),
    });
    runtime
        .block_on(connect(shared))
        .map_err(|error| Failure::system("the connection to the client broke", error))
}

async fn connect(shared: Arc<Shared>) -> Result<(), Error> {
    let queued = Arc::clone(&shared.queued);
    let transport = Stdio::new().with_debug(move |line, direction| {
        if matches!(direction, LineDirection::Stdout) && line.contains("\"session/update\"") {
            let _ = queued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        }
    });
    // One for each handler.
    let [init, new, load, resume, close, list, prompt, cancel] = std::array::from_fn(|_| Arc::clone(&shared));
    Agent
        .v1()
        .name("outlast")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(init.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, connection| {
                let id = SessionId::new(fresh_id());
                let client = new.open(id.clone(), &request.cwd, connection);
                responder.respond(NewSessionResponse::new(id))?;
                client.send(commands::available());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, connection| {
                if let Err(error) = known(&request.session_id) {
                    return responder.respond_with_error(error);
                }
                let client = load.open(request.session_id, &request.cwd, connection);
                let live = replay::past(&client);
                responder.respond(LoadSessionResponse::new())?;
                client.send(commands::available());
                live.into_iter().for_each(|job| streams::begin(&client, job));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, connection| {
                if let Err(error) = known(&request.session_id) {
                    return responder.respond_with_error(error);
                }
                let client = resume.open(request.session_id, &request.cwd, connection);
                responder.respond(ResumeSessionResponse::new())?;
                client.send(commands::available());
                replay::open_calls(&client);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _| {
                close.close(&request.session_id);
                responder.respond(CloseSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: ListSessionsRequest, responder, _| responder.respond(replay::sessions(&list)),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection| {
                let Some(session) = prompt.session(&request.session_id) else {
                    return responder.respond_with_error(no_session(&request.session_id));
                };
                turn::begin(prompt.client(session, connection), &request.prompt, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancelled: CancelNotification, _| {
                if let Some(session) = cancel.session(&cancelled.session_id) {
                    lock(&session.turns).iter().for_each(|turn| turn.cancel());
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

impl Shared {
    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let meta = request.client_capabilities.meta.as_ref();
        let terminals = meta.and_then(|meta| meta.get("terminal_output")).is_some_and(|value| value == true);
        self.terminals.store(terminals, Ordering::Relaxed);
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(AgentCapabilities::new().load_session(true).session_capabilities(sessions))
            .agent_info(Implementation::new("outlast", env!("CARGO_PKG_VERSION")).title("Outlast".to_owned()))
    }

    /// The session of an id, and its client. A session that is already open continues.
    fn open(
        self: &Arc<Self>,
        id: SessionId,
        folder: &Path,
        connection: ConnectionTo<agent_client_protocol::Client>,
    ) -> Client {
        let session = {
            let mut sessions = lock(&self.sessions);
            let fresh = || {
                Arc::new(Session {
                    id: id.clone(),
                    folder: folder.to_owned(),
                    closed: AtomicBool::new(false),
                    turns: Mutex::default(),
                    streaming: Mutex::default(),
                    shown: Shown::open(Arc::clone(&self.folder), &owner(&id)),
                })
            };
            Arc::clone(sessions.entry(id.0.to_string()).or_insert_with(fresh))
        };
        self.client(session, connection)
    }

    fn client(
        self: &Arc<Self>,
        session: Arc<Session>,
        connection: ConnectionTo<agent_client_protocol::Client>,
    ) -> Client {
        Client {
            id: session.id.clone(),
            owner: owner(&session.id),
            connection,
            runtime: tokio::runtime::Handle::current(),
            shared: Arc::clone(self),
            session,
        }
    }

    fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        lock(&self.sessions).get(&*id.0).cloned()
    }

    /// The client closes a session; its jobs continue.
    fn close(&self, id: &SessionId) {
        if let Some(session) = lock(&self.sessions).remove(&*id.0) {
            session.closed.store(true, Ordering::Relaxed);
            lock(&session.turns).iter().for_each(|turn| turn.cancel());
        }
    }
}

impl Client {
    /// Sends an update. If the client has disconnected, that is not an error.
    fn send(&self, update: SessionUpdate) {
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        let _ = self.connection.send_notification(SessionNotification::new(self.id.clone(), update));
    }

    /// Sends a message of the agent.
    fn say(&self, text: impl Into<String>) {
        let chunk = agent_client_protocol::v1::schema::ContentChunk::new(text.into().into());
        self.send(SessionUpdate::AgentMessageChunk(chunk));
    }

    /// Whether more can be sent without piling up.
    fn has_room(&self) -> bool {
        self.shared.queued.load(Ordering::Relaxed) < MAX_QUEUED_UPDATES
    }

    /// The id of a tool call that is not a job.
    fn fresh_call_id(&self, what: &str) -> String {
        format!("{what}-{}", self.shared.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// A unique id.
fn fresh_id() -> String {
    format!("ol-{:016x}", crate::random())
}

/// Only our own ids can be loaded: the owner of the jobs is derived from them.
fn known(id: &SessionId) -> Result<(), Error> {
    let ours =
        id.0.strip_prefix("ol-")
            .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if ours { Ok(()) } else { Err(no_session(id)) }
}

fn no_session(id: &SessionId) -> Error {
    Error::invalid_params().data(serde_json::json!(format!("there is no session {}", id.0)))
}
