//! The conformance vectors of the relay's frames, which other implementations run too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use outlast_remote::frame::{Assembler, Decoder, FrameError, Message, MessageKind, encode};
use outlast_remote::message::Hello;
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn kind(value: &Value) -> MessageKind {
    MessageKind::ALL.into_iter().find(|kind| kind.name() == value["kind"]).unwrap()
}

fn message(value: &Value) -> Message {
    let text = |name: &str| value["body_repeat"][name].as_str().unwrap().to_owned();
    let body = match &value["body_repeat"] {
        Value::Null => value["body"].as_str().unwrap().to_owned(),
        repeat => {
            let times = usize::try_from(repeat["times"].as_u64().unwrap()).unwrap();
            format!("{}{}{}", text("before"), text("unit").repeat(times), text("after"))
        }
    };
    let stream = u32::try_from(value["stream"].as_u64().unwrap()).unwrap();
    Message { stream, kind: kind(value), body: body.into_bytes() }
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    text.as_bytes().chunks(2).map(byte).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    match value["hex"].as_str() {
        Some(text) => hex(text),
        None => {
            let times = usize::try_from(value["repeat"]["times"].as_u64().unwrap()).unwrap();
            hex(value["repeat"]["hex"].as_str().unwrap()).repeat(times)
        }
    }
}

/// All messages in bytes that come in pieces of this length.
fn decoded(mut decoder: Decoder, bytes: &[u8], piece: usize) -> Result<Vec<Message>, FrameError> {
    let (mut assembler, mut messages) = (Assembler::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame()? {
            messages.extend(assembler.push(frame)?);
        }
    }
    Ok(messages)
}

fn decoder(value: &Value) -> Decoder {
    if value["from"] == "relay" { Decoder::of_relay() } else { Decoder::of_client() }
}

#[test]
fn messages_encode_to_the_bytes_of_the_vectors_and_back() {
    let vectors = vectors("frames.json");
    for one in vectors["encode"].as_array().unwrap() {
        let message = message(one);
        let bytes = encode(message.stream, message.kind, &message.body);
        if let Some(expected) = one["hex"].as_str() {
            assert_eq!(bytes, hex(expected), "{one}");
        } else {
            let mut decoder = Decoder::of_client();
            decoder.push(&bytes);
            for frame in one["frames"].as_array().unwrap() {
                let decoded = decoder.next_frame().unwrap().unwrap();
                assert_eq!(decoded.body.len() as u64, frame["length"].as_u64().unwrap());
                assert_eq!(decoded.more, frame["more"].as_bool().unwrap());
            }
            assert_eq!(decoder.next_frame(), Ok(None));
        }
        for piece in [1, 7, bytes.len()] {
            let decoded = decoded(Decoder::of_client(), &bytes, piece).unwrap();
            assert_eq!(decoded, std::slice::from_ref(&message), "{one}");
        }
    }
}

#[test]
fn a_decoder_gets_over_what_it_must_and_refuses_what_it_cannot_read() {
    let vectors = vectors("frames.json");
    for one in vectors["skip"].as_array().unwrap() {
        let expected: Vec<Message> = one["messages"].as_array().unwrap().iter().map(message).collect();
        for piece in [1, 1000] {
            assert_eq!(decoded(decoder(one), &bytes(one), piece).unwrap(), expected, "{}", one["what"]);
        }
    }
    for one in vectors["refuse"].as_array().unwrap() {
        assert!(decoded(decoder(one), &bytes(one), 1000).is_err(), "{}", one["what"]);
    }
}

#[test]
fn two_sides_agree_on_the_version_of_the_vectors() {
    for pair in vectors("hello.json")["pairs"].as_array().unwrap() {
        let hello = |side: &str| serde_json::from_value::<Hello>(pair[side].clone()).unwrap();
        let (a, b) = (hello("a"), hello("b"));
        assert_eq!(a.common(&b).ok().map(u64::from), pair["common"].as_u64(), "{pair}");
        assert_eq!(b.common(&a).ok(), a.common(&b).ok());
    }
}
