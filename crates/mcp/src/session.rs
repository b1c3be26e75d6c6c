//! Who calls: so that after a restart, or when a conversation was shortened, its jobs are found again.

use rmcp::RoleServer;
use rmcp::model::RequestMetaObject;
use rmcp::service::RequestContext;

/// What clients put into `_meta` to name a conversation, in the order in which we believe it.
const THREADS: [&str; 2] = ["threadId", "io.modelcontextprotocol/threadId"];

/// The session of a request: what the server was told to use, else the client's own conversation, else the client
/// and the folder that it started the server in.
pub(crate) fn of(fixed: Option<&str>, context: &RequestContext<RoleServer>) -> String {
    if let Some(session) = fixed {
        return session.to_owned();
    }
    let client = context.client_info().map_or_else(|| "mcp".into(), |info| plain(&info.name));
    if let Some(thread) = thread(&context.meta) {
        return format!("{client}:{thread}");
    }
    let folder = std::env::current_dir()
        .map_or_else(|_| "(deleted folder)".into(), |path| path.to_string_lossy().into_owned());
    format!("{client}:{folder}")
}

/// What a wake needs to find the caller's conversation again: Codex knows its threads by this variable, and sets it in
/// shells of its own.
pub(crate) fn env(context: &RequestContext<RoleServer>) -> Vec<(String, String)> {
    let is_codex = context.client_info().is_some_and(|info| info.name.contains("codex"));
    let thread = thread(&context.meta).filter(|_| is_codex);
    thread.map(|thread| ("CODEX_THREAD_ID".to_owned(), thread)).into_iter().collect()
}

fn thread(meta: &RequestMetaObject) -> Option<String> {
    THREADS.iter().find_map(|name| meta.get(*name)?.as_str()).filter(|thread| !thread.is_empty()).map(plain)
}

/// One line of what can be shown.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}
