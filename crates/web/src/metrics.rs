//! `/metrics` for Prometheus, for who brings the token: a scraper is no browser, so it has neither cookie nor key.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, header};
use outlast_job::census::Census;
use outlast_job::{Failure, Outlast};
use outlast_protocol::request::{AskKeepers, List};
use ring::digest::{SHA256, digest};

/// The shortest token.
const MIN_TOKEN: usize = 16;

/// What is counted, and who may see it.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The hash of the token: how long a comparison takes says nothing about it.
    token: Vec<u8>,
    census: Mutex<Census>,
}

impl Metrics {
    /// # Errors
    /// A token that cannot be read, or is too short.
    pub(crate) fn new(outlast: &Outlast, token: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(token)
            .map_err(|error| Failure::usage(format!("cannot read the token {}: {error}", token.display())))?;
        let text = text.trim();
        if text.len() < MIN_TOKEN {
            return Err(Failure::usage(format!("the token for metrics is shorter than {MIN_TOKEN} letters")));
        }
        let mut census = Census::default();
        census.look(outlast, &jobs(outlast));
        Ok(Self { token: digest(&SHA256, text.as_bytes()).as_ref().to_vec(), census: Mutex::new(census) })
    }

    /// Whether the token comes along.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer "));
        given.is_some_and(|given| digest(&SHA256, given.trim().as_bytes()).as_ref() == self.token)
    }

    pub(crate) fn text(&self, outlast: &Outlast) -> String {
        let jobs = jobs(outlast);
        self.census.lock().unwrap_or_else(PoisonError::into_inner).text(outlast, &jobs)
    }
}

fn jobs(outlast: &Outlast) -> Vec<outlast_protocol::request::ListedJob> {
    outlast.list(List { keepers: AskKeepers::All, ..List::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let folder = tempfile::tempdir().unwrap();
        let outlast = Outlast::at(&folder.path().join("home")).unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "short\n").unwrap();
        assert!(Metrics::new(&outlast, &file).is_err(), "a short token is none");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let metrics = Metrics::new(&outlast, &file).unwrap();
        let with = |value: &str| HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        assert!(metrics.admits(&with("Bearer 0123456789abcdef")));
        for wrong in ["Bearer 0123456789abcde", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer "] {
            assert!(!metrics.admits(&with(wrong)), "{wrong}");
        }
        assert!(metrics.text(&outlast).contains("outlast_jobs_by_state{state=\"running\"} 0"));
    }
}
