//! Who calls: distinguishes conversations, and recognises one after its server was restarted.
//!
//! If a client names its conversation, that counts. Otherwise a conversation is the process that talks to us:
//! the agent at the other end of stdin, or an HTTP session.

use outlast_job::registry::format::is_traceparent;
use outlast_job::session::agent_lives;
use rmcp::RoleServer;
use rmcp::model::RequestMetaObject;
use rmcp::service::RequestContext;

/// The `_meta` keys with which clients name a conversation, in order of preference.
const THREADS: [&str; 4] =
    ["threadId", "io.modelcontextprotocol/threadId", "sessionId", "io.modelcontextprotocol/sessionId"];
/// The header that names an HTTP session, in the older protocol.
const HTTP_SESSION: &str = "mcp-session-id";
/// Separates the client and its folder from the conversation.
const MARK: char = '#';

/// The session of a request: the one that the server was told to use, else the client's own conversation,
/// else the client, the folder in which it started the server, and the process at the other end.
pub(crate) fn of(fixed: Option<&str>, agent: Option<&str>, context: &RequestContext<RoleServer>) -> String {
    if let Some(session) = fixed {
        return session.to_owned();
    }
    let client = context.client_info().map_or_else(|| "mcp".into(), |info| plain(&info.name));
    if let Some(thread) = thread(&context.meta) {
        return format!("{client}:{thread}");
    }
    let folder = std::env::current_dir()
        .map_or_else(|_| "(deleted folder)".into(), |path| path.to_string_lossy().into_owned());
    match http_session(context).or(agent.map(ToOwned::to_owned)) {
        Some(conversation) => format!("{client}:{folder}{MARK}{conversation}"),
        // Over HTTP, a request of the newer protocol does not say what it belongs to.
        None => format!("{client}:{folder}"),
    }
}

/// Whether a session is an earlier conversation of the same client in the same folder, whose agent has ended.
pub(crate) fn is_predecessor(earlier: &str, session: &str) -> bool {
    let (Some((before, agent)), Some((now, own))) = (earlier.rsplit_once(MARK), session.rsplit_once(MARK))
    else {
        return false;
    };
    before == now && agent != own && agent_lives(agent) == Some(false) && agent_lives(own).is_some()
}

/// What the job gets from its caller. A wake needs it to find the caller's conversation: Codex identifies its threads by this variable, and
/// sets it in its own shells.
pub(crate) fn env(context: &RequestContext<RoleServer>) -> Vec<(String, String)> {
    let is_codex = context.client_info().is_some_and(|info| info.name.contains("codex"));
    let thread = thread(&context.meta).filter(|_| is_codex);
    let mut env: Vec<(String, String)> =
        thread.map(|thread| ("CODEX_THREAD_ID".to_owned(), thread)).into_iter().collect();
    // The trace that the call belongs to goes on in the job.
    let text = |name: &str| context.meta.get(name).and_then(|value| value.as_str()).map(plain);
    if let Some(trace) = text("traceparent").filter(|trace| is_traceparent(trace)) {
        env.push(("TRACEPARENT".into(), trace));
        env.extend(text("tracestate").map(|state| ("TRACESTATE".to_owned(), state)));
    }
    env
}

fn thread(meta: &RequestMetaObject) -> Option<String> {
    THREADS.iter().find_map(|name| meta.get(*name)?.as_str()).filter(|thread| !thread.is_empty()).map(plain)
}

fn http_session(context: &RequestContext<RoleServer>) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    let id = parts.headers.get(HTTP_SESSION)?.to_str().ok()?;
    Some(format!("http-{}", plain(id)))
}

/// One printable line.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_conversation_whose_agent_has_ended_is_a_predecessor() {
        let living = outlast_job::session::agent_at_stdin().unwrap();
        let gone = "1-18446744073709551615";
        let own = "c:/x#7-8";
        assert!(is_predecessor(&format!("c:/x#{gone}"), own));
        for other in
            ["c:/x", "c:/x#", "c:/x#http-1-2", "c:/y#1-2", "d:/x#1-2", own, &format!("c:/x#{living}")]
        {
            assert!(!is_predecessor(other, own), "{other}");
        }
        assert!(!is_predecessor(&format!("c:/x#{gone}"), "c:/x"));
    }
}
