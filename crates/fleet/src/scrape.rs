//! `/metrics` over HTTP, for who has the token. One question a connection: that is all that a scraper needs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::metrics;
use crate::node::Node;

/// The longest head of a question.
const MAX_HEAD: usize = 8 << 10;
/// How long a question may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest token.
const MIN_TOKEN: usize = 16;

/// Begins to serve; returns the address.
///
/// # Errors
/// When the token cannot be read or is too short, or the address cannot be listened on.
pub fn serve(node: &Arc<Node>, address: SocketAddr, token: &Path) -> Result<SocketAddr, Failure> {
    let text = std::fs::read_to_string(token)
        .map_err(|error| Failure::usage(format!("cannot read the token {}: {error}", token.display())))?;
    let token = text.trim().to_owned();
    if token.len() < MIN_TOKEN {
        return Err(Failure::usage(format!("the token for metrics is shorter than {MIN_TOKEN} letters")));
    }
    let listener = node.broker.wait(TcpListener::bind(address));
    let listener =
        listener.map_err(|error| Failure::usage(format!("cannot listen on {address}: {error}")))?;
    let at = listener.local_addr().unwrap_or(address);
    let serving = Arc::clone(node);
    node.broker.spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                // One after the other: nobody can hold up more than the next.
                let _ = tokio::time::timeout(TIMEOUT, answer(stream, &serving, &token)).await;
            }
        }
    });
    Ok(at)
}

async fn answer(mut stream: TcpStream, node: &Arc<Node>, token: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes).await? {
            0 => return Ok(()),
            n => head.extend_from_slice(&bytes[..n]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let (status, body) = if !head.starts_with("GET /metrics ") {
        ("404 Not Found", String::new())
    } else if !has_token(&head, token) {
        ("401 Unauthorized", String::new())
    } else {
        ("200 OK", metrics::of_node(node).await)
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Whether the token comes along. It is compared by hashes, so that the time it takes says nothing.
fn has_token(head: &str, token: &str) -> bool {
    let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().to_vec();
    let wanted = digest(token);
    head.lines().any(|line| {
        let Some((name, value)) = line.split_once(':') else { return false };
        name.eq_ignore_ascii_case("authorization")
            && value.trim().strip_prefix("Bearer ").is_some_and(|given| digest(given.trim()) == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let head =
            |value: &str| format!("GET /metrics HTTP/1.1\r\nHost: x\r\nauthorization: {value}\r\n\r\n");
        assert!(has_token(&head("Bearer 0123456789abcdef"), "0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcde", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer "] {
            assert!(!has_token(&head(wrong), "0123456789abcdef"), "{wrong}");
        }
    }
}
