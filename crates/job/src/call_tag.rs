//! Tags by which a tool call is recognised that started a job: only somebody with the key can make one, and each job has its
//! own, so a job's output never holds one.

use ring::hmac;

use crate::spec::Handle;

const PREFIX: &str = "outlast:";
/// How many bytes of the signature are written.
const SIGNED: usize = 8;

/// The tag of a job.
#[must_use]
pub fn call_tag(key: &str, job: Handle) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let signature = hmac::sign(&key, job.to_string().as_bytes());
    let hex: String = signature.as_ref().iter().take(SIGNED).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{job}:{hex}")
}

/// The tag as it stands in an answer.
#[must_use]
pub fn call_note(tag: &str) -> String {
    format!("call {tag}")
}

/// The first valid tag in a text: whose it is, and the tag.
#[must_use]
pub fn find_call_tag(key: &str, text: &str) -> Option<(Handle, String)> {
    text.match_indices(PREFIX).find_map(|(at, prefix)| {
        let number = text[at + prefix.len()..].split(':').next()?;
        let job: Handle = number.parse().ok()?;
        let tag = call_tag(key, job);
        text[at..].starts_with(&tag).then_some((job, tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_of_that_job_under_that_key_is_found() {
        let tag = call_tag("key", Handle::new(12));
        assert_eq!(
            find_call_tag("key", &format!("x outlast:7:0 {tag} y")),
            Some((Handle::new(12), tag.clone()))
        );
        assert_eq!(find_call_tag("other", &tag), None);
        assert_eq!(find_call_tag("key", &tag.replace(":12:", ":13:")), None);
        assert_eq!(find_call_tag("key", "outlast:"), None);
    }
}
