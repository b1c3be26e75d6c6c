//! Jobs and tool calls as OpenTelemetry spans, in the JSON form of OTLP over HTTP. Names, codes and times; no command line and no output, unless asked for.

use std::collections::BTreeMap;

use outlast_job::calls::{self, CallEntry};
use outlast_job::lifecycle::{EndedBy, Outcome};
use outlast_protocol::Failure;
use outlast_protocol::info::Info;
use outlast_protocol::lifecycle::State;
use serde_json::{Value, json};

/// The span ended well, or did not.
const STATUS_OK: u32 = 1;
const STATUS_ERROR: u32 = 2;
/// A span inside of this program.
const KIND_INTERNAL: u32 = 1;
/// A span of an answer to somebody else.
const KIND_SERVER: u32 = 2;

/// Where spans go, and how they are marked: the usual variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exporter {
    /// Where they are posted.
    pub url: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// What they are spans of.
    pub resource: BTreeMap<String, String>,
}

impl Exporter {
    /// From the environment, as the OpenTelemetry specification names it.
    ///
    /// # Errors
    /// No endpoint is set, or another protocol than HTTP with JSON is asked for.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let first =
            |names: &[&str]| names.iter().find_map(|name| get(name).filter(|value| !value.is_empty()));
        let protocol = first(&["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
        if let Some(protocol) = protocol.filter(|protocol| protocol != "http/json") {
            return Err(Failure::usage(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; only http/json is spoken"
            ))
            .hint("collectors take http/json at the same address as http/protobuf: set it to http/json"));
        }
        let url = first(&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]).or_else(|| {
            let base = first(&["OTEL_EXPORTER_OTLP_ENDPOINT"])?;
            Some(format!("{}/v1/traces", base.trim_end_matches('/')))
        });
        let url = url.ok_or_else(|| {
            Failure::usage("no collector is named")
                .hint("set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318")
        })?;
        let pairs = |text: Option<String>| -> Vec<(String, String)> {
            let text = text.unwrap_or_default();
            let pair =
                |pair: &str| pair.split_once('=').map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
            text.split(',').filter_map(pair).filter(|(key, _)| !key.is_empty()).collect()
        };
        let headers = pairs(first(&["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]));
        let mut resource: BTreeMap<String, String> =
            pairs(get("OTEL_RESOURCE_ATTRIBUTES")).into_iter().collect();
        let name = first(&["OTEL_SERVICE_NAME"]).or_else(|| resource.get("service.name").cloned());
        resource.insert("service.name".into(), name.unwrap_or_else(|| "outlast".into()));
        resource.entry("host.name".into()).or_insert_with(outlast_remote::message::machine_name);
        Ok(Self { url, headers, resource })
    }

    /// The body of one request.
    #[must_use]
    pub fn request(&self, spans: &[Value]) -> Value {
        let scope = json!({ "name": "outlast", "version": env!("CARGO_PKG_VERSION") });
        json!({ "resourceSpans": [{
            "resource": { "attributes": attributes(self.resource.iter().map(|(k, v)| (k.as_str(), json!({ "stringValue": v })))) },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] })
    }
}

fn attributes<'a>(all: impl Iterator<Item = (&'a str, Value)>) -> Vec<Value> {
    all.map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

/// The span of a tool call. Its place in the log is like no other, so the same call has the same span however often it is sent.
#[must_use]
pub fn call_span(call: &CallEntry, place: calls::Place, host_seed: &str) -> Value {
    let text = |value: &str| json!({ "stringValue": value });
    let known = [
        ("mcp.method.name", text("tools/call")),
        ("gen_ai.tool.name", text(&call.tool)),
        ("outlast.session", text(&call.session)),
    ];
    let status = if call.ok { json!({ "code": STATUS_OK }) } else { json!({ "code": STATUS_ERROR }) };
    let own = digest(&format!("{host_seed}:call:{}:{}:{}", place.file, place.offset, call.at));
    let (trace, parent) = match call.traceparent.as_deref().and_then(parent_of) {
        Some((trace, parent)) => (trace, Some(parent)),
        None => (own[..32].to_owned(), None),
    };
    let mut span = json!({
        "traceId": trace,
        "spanId": own[32..48],
        "name": format!("tools/call {}", call.tool),
        "kind": KIND_SERVER,
        "startTimeUnixNano": nanos(call.at),
        "endTimeUnixNano": nanos(call.at + call.ms),
        "attributes": attributes(known.into_iter()),
        "status": status,
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = parent.into();
    }
    span
}

/// The span of a job that has ended; none while it runs.
#[must_use]
pub fn span(info: &Info, host_seed: &str, with_command: bool) -> Option<Value> {
    let ended_at = match &info.state {
        State::Lost { found_at, .. } => *found_at,
        state @ (State::Queued(_)
        | State::Starting
        | State::Running { .. }
        | State::Completed(_)
        | State::Failed(_)
        | State::Killed(_)) => state.receipt()?.ended_at,
    };
    let text = |value: &str| json!({ "stringValue": value });
    let number = |value: i64| json!({ "intValue": value.to_string() });
    let mut known = vec![
        ("outlast.job", number(i64::try_from(info.handle.number()).unwrap_or(i64::MAX))),
        ("outlast.session", text(&info.session)),
        ("outlast.state", text(info.state.name())),
        ("outlast.takeovers", number(i64::from(info.takeovers))),
    ];
    let program = info.command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().trim_matches(['\'', '"']);
    known.push(("process.executable.name", text(program)));
    if let Some(process) = &info.process {
        known.push(("process.pid", number(i64::from(process.pid))));
    }
    if let Some(code) = info.state.exit_code() {
        known.push(("process.exit.code", number(i64::from(code))));
    }
    if with_command {
        known.push(("process.command_line", text(&info.command)));
    }
    if let Some(receipt) = info.state.receipt() {
        if let Outcome::Signalled { signal, .. } = &receipt.outcome {
            known.push(("outlast.signal", text(signal)));
        }
        if receipt.ended_by != EndedBy::Itself {
            known.push(("outlast.ended_by", text(&receipt.ended_by.describe())));
        }
    }
    let is_well = matches!(info.state, State::Completed(_));
    let status = if is_well {
        json!({ "code": STATUS_OK })
    } else {
        json!({ "code": STATUS_ERROR, "message": info.state.name() })
    };
    let own = digest(&format!("{host_seed}:{}:{}", info.handle.number(), info.created_at));
    let (trace, parent) = match info.traceparent.as_deref().and_then(parent_of) {
        Some((trace, parent)) => (trace, Some(parent)),
        None => (own[..32].to_owned(), None),
    };
    let mut span = json!({
        "traceId": trace,
        "spanId": own[32..48],
        "name": info.name.clone().unwrap_or_else(|| program.to_owned()),
        "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanos(info.created_at),
        "endTimeUnixNano": nanos(ended_at),
        "attributes": attributes(known.into_iter()),
        "status": status,
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = parent.into();
    }
    Some(span)
}

fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}

/// The trace and the span of a `traceparent`.
fn parent_of(traceparent: &str) -> Option<(String, String)> {
    let mut parts = traceparent.split('-').skip(1);
    Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
}

/// The same job has the same span, however often it is sent.
fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_variables_say_where_spans_go() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        assert!(Exporter::from_environment(set(&[])).is_err());
        let exporter = Exporter::from_environment(set(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b, c = d=e"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=x"),
        ]))
        .unwrap();
        assert_eq!(exporter.url, "http://c:4318/v1/traces");
        assert_eq!(exporter.headers, [("a".into(), "b".into()), ("c".into(), "d=e".into())]);
        assert_eq!(
            (exporter.resource["team"].as_str(), exporter.resource["service.name"].as_str()),
            ("x", "outlast")
        );
        let grpc =
            set(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(Exporter::from_environment(grpc).unwrap_err().message.contains("grpc"));
    }
}
