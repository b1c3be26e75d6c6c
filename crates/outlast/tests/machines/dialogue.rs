//! The dialogue of the conformance vectors with a real `outlast relay`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Stdio;

use outlast_remote::frame::{Assembler, Decoder, Message, MessageKind, encode};
use serde_json::Value;

use super::sandbox;

/// Puts names that were captured into a value.
fn filled(value: &Value, captured: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => captured.get(text).unwrap_or(value).clone(),
        Value::Array(all) => all.iter().map(|one| filled(one, captured)).collect(),
        Value::Object(all) => all.iter().map(|(name, one)| (name.clone(), filled(one, captured))).collect(),
        other => other.clone(),
    }
}

/// Whether everything that is expected is there; a name that is not known yet takes what it finds.
fn fits(expected: &Value, found: &Value, captured: &mut BTreeMap<String, Value>) -> bool {
    match expected {
        Value::String(name) if name.starts_with('$') => {
            let known = captured.entry(name.clone()).or_insert_with(|| found.clone());
            known == found
        }
        Value::Object(all) => all.iter().all(|(name, one)| fits(one, &found[name], captured)),
        other => other == found,
    }
}

#[test]
fn a_relay_answers_as_the_vectors_say() {
    let sandbox = sandbox();
    let mut relay = sandbox
        .command(sandbox.program())
        .arg("relay")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (relay.stdin.take().unwrap(), relay.stdout.take().unwrap());
    let (mut decoder, mut assembler) = (Decoder::of_relay(), Assembler::default());
    let mut waiting: Vec<Message> = Vec::new();
    let mut captured = BTreeMap::new();
    let vectors = include_str!("../../../remote/tests/vectors/dialogue.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    for step in vectors["steps"].as_array().unwrap() {
        if let Some(say) = step["say"].as_object() {
            let kind = MessageKind::ALL.into_iter().find(|kind| kind.name() == say["kind"]).unwrap();
            let body = filled(&say["body"], &captured).to_string();
            let stream = u32::try_from(say["stream"].as_u64().unwrap()).unwrap();
            input.write_all(&encode(stream, kind, body.as_bytes())).unwrap();
        }
        for expected in step["expect"].as_array().unwrap() {
            let is_of_stream = |one: &Message| u64::from(one.stream) == expected["stream"].as_u64().unwrap();
            let came = loop {
                if let Some(at) = waiting.iter().position(is_of_stream) {
                    let came = waiting.remove(at);
                    let body: Value = serde_json::from_slice(&came.body).unwrap();
                    if expected["others_before"] != true || body == expected["body"] {
                        break came;
                    }
                    continue;
                }
                let mut bytes = [0; 4096];
                let n = output.read(&mut bytes).unwrap();
                assert!(n > 0, "the relay ended at {step}");
                decoder.push(&bytes[..n]);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    waiting.extend(assembler.push(frame).unwrap());
                }
            };
            let body: Value = serde_json::from_slice(&came.body).unwrap();
            assert_eq!(came.kind.name(), expected["kind"], "{step}: {body}");
            assert!(fits(&expected["body"], &body, &mut captured), "{step}: {body}");
        }
    }
    drop(input);
    assert!(relay.wait().unwrap().success(), "it ends with its pipe");
    assert!(sandbox.job(1).is_dir() && !sandbox.job(2).exists(), "asked twice, it was started once");
}
