//! What a client gets as the answer of a call, and the shortest way there.
//!
//! The protocol's loop has a thread of its own, and to wake it costs the caller as much as the answer itself, when everything
//! has gone to sleep. So the thread that has an answer writes it out by itself, where it is certain that nothing else is
//! being written and that it fits at once. The loop is given a [mark](WRITTEN) in its place.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, MetaObject, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{RequestContext, TxJsonRpcMessage};

use crate::app;
use crate::call_handle::CallHandle;
use crate::calls::Reply;
use crate::engine::Engine;
use crate::sent::Unsent;
use crate::tasks::Pending;

/// Marks an answer that is out already. It never leaves the house.
const WRITTEN: &str = "outlast/written";

/// What came of a call's reply.
pub(crate) enum Answered {
    /// It is out.
    Written,
    /// The protocol's loop sends it.
    Result(Box<CallToolResult>),
    /// It is asked for later.
    Pending(Box<Pending>),
}

/// How a call is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answering {
    pub(crate) id: RequestId,
    /// Parameters that the tool does not have.
    pub(crate) unknown: Vec<String>,
    pub(crate) words_alone: bool,
    shows_page: bool,
    older_era: bool,
    out: Option<Arc<Unsent>>,
}

impl Answering {
    pub(crate) fn new(context: &RequestContext<RoleServer>, out: Option<Arc<Unsent>>) -> Self {
        let version = context.protocol_version();
        Self {
            id: context.id.clone(),
            unknown: Vec::new(),
            words_alone: false,
            shows_page: app::is_shown_by(context.client_capabilities().as_ref()),
            older_era: version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28),
            out,
        }
    }

    /// Answers: at once, if there is a way.
    pub(crate) fn answer(&self, engine: &Engine, call: &CallHandle, mut reply: Reply) -> Answered {
        if let Some(pending) = reply.pending.take() {
            return Answered::Pending(Box::new(pending));
        }
        let result = self.result(reply);
        match &self.out {
            Some(out) if out.is_idle() && !call.is_cancelled() => {
                let line = self.line(result.clone());
                let _settles = out.settling();
                if !line.is_some_and(|line| out.write_now(&self.id, &line)) {
                    return Answered::Result(Box::new(result));
                }
                call.set_answered();
                engine.settle(call.take_receipts(), true);
                Answered::Written
            }
            Some(_) | None => Answered::Result(Box::new(result)),
        }
    }

    fn result(&self, mut reply: Reply) -> CallToolResult {
        let ignored =
            self.unknown.iter().map(|name| format!("this tool has no parameter {name:?}: ignored\n"));
        reply.text.insert_str(0, &ignored.collect::<String>());
        let page = if self.shows_page { app::about(&reply.facts) } else { None };
        let mut result = success(reply, self.words_alone);
        result.meta = page.or(result.meta);
        result
    }

    /// The answer as the protocol's loop would write it.
    fn line(&self, result: CallToolResult) -> Option<Vec<u8>> {
        let mut result = ServerResult::CallToolResult(result);
        if self.older_era {
            result.strip_result_type_for_legacy_peer();
        } else {
            result.fill_missing_cache_hints();
        }
        let message: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::response(result, self.id.clone());
        let mut line = serde_json::to_vec(&message).ok()?;
        line.push(b'\n');
        Some(line)
    }
}

/// Words first, and the same as facts, unless the client wants words alone.
pub(crate) fn success(reply: Reply, words_alone: bool) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
    result.structured_content = (!words_alone).then_some(reply.facts);
    result
}

/// What the protocol's loop is given for an answer that is out.
pub(crate) fn written() -> CallToolResult {
    let mut meta = MetaObject::new();
    meta.insert(WRITTEN.into(), true.into());
    let mut result = CallToolResult::success(Vec::new());
    result.meta = Some(meta);
    result
}

/// Whether that is one.
pub(crate) fn is_written(message: &TxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Response(response) = message else { return false };
    let ServerResult::CallToolResult(result) = &response.result else { return false };
    result.meta.as_ref().is_some_and(|meta| meta.contains_key(WRITTEN))
}
