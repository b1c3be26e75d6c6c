//! The page: its files, as they are in `assets/`, and what browsers are told about them.
//!
//! No script and no style comes from anywhere else. Only the page with the terminal may have styles that are made by a script:
//! xterm.js makes some.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::server::{Body, full};

/// A file of the page.
struct Asset {
    path: &'static str,
    bytes: &'static [u8],
    gzipped: &'static [u8],
}

// `ASSETS`, the files of the page, and `XTERM`, those of xterm.js, or none: see `build.rs`.
include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What draws the open terminal: `xterm.js`, or `rows`, our own renderer, which draws the tiles too.
#[must_use]
pub fn terminal_engine() -> &'static str {
    if has_xterm() { "xterm.js" } else { "rows" }
}

/// Whether xterm.js is there. For tests it can be left out without another build.
pub(crate) fn has_xterm() -> bool {
    !XTERM.is_empty() && std::env::var_os("OUTLAST_WEB_XTERM").is_none_or(|said| said != "0")
}

/// What a page may do.
fn policy(styles: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self' data:; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; frame-src 'none'; object-src 'none'; \
         base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// What holds for every answer.
pub(crate) fn protect(headers: &mut HeaderMap) {
    let always = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=(), usb=(), serial=()"),
    ];
    for (name, value) in always {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
}

/// The file of a path; none when there is none.
pub(crate) fn answer(path: &str, asked: &HeaderMap) -> Option<Response<Body>> {
    let path = match path {
        "/" | "/inbox" => "/index.html",
        _ if path.strip_prefix("/job/").is_some_and(is_job) => "/job.html",
        _ => path,
    };
    let xterm = XTERM.iter().filter(|_| has_xterm());
    let asset = ASSETS.iter().chain(xterm).find(|asset| asset.path == path)?;
    // What does not get smaller is sent as it is.
    let packed = takes_gzip(asked) && asset.gzipped.len() < asset.bytes.len();
    let tag = tag_of(asset, packed);
    let mut response = Response::new(full(if packed { asset.gzipped } else { asset.bytes }));
    if asked.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        response = Response::new(full(b"" as &[u8]));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind_of(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if path.ends_with(".html") {
        let styles = if path == "/job.html" && has_xterm() { " 'unsafe-inline'" } else { "" };
        if let Ok(policy) = HeaderValue::from_str(&policy(styles)) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    Some(response)
}

/// Whether the rest of a path can name a job: `3`, or `gpu1/3`.
fn is_job(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty()
        && name.len() <= 128
        && name.split('/').count() <= 2
        && name.split('/').all(|part| !part.is_empty() && part.chars().all(is_word))
}

/// Whether a browser takes what is compressed.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let accepts =
        asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepts.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && weight.replace(' ', "") != "q=0"
    })
}

fn tag_of(asset: &Asset, packed: bool) -> String {
    static TAGS: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    let tags = TAGS.get_or_init(|| {
        let tag = |asset: &'static Asset| {
            let digest = ring::digest::digest(&ring::digest::SHA256, asset.bytes);
            let hex: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            (asset.path, hex)
        };
        ASSETS.iter().chain(XTERM).map(tag).collect()
    });
    let tag =
        tags.iter().find(|(path, _)| *path == asset.path).map(|(_, tag)| tag.as_str()).unwrap_or_default();
    format!("\"{tag}{}\"", if packed { "-gzip" } else { "" })
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served_and_nothing_else() {
        let names = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/assets")).unwrap();
        for name in names.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
            assert!(answer(&format!("/{name}"), &HeaderMap::new()).is_some(), "{name}");
        }
        for path in [
            "/../Cargo.toml",
            "/job/",
            "/job/a/b/c",
            "/job/<x>",
            "/nothing",
            "//index.html",
            "/assets/app.css",
        ] {
            assert!(answer(path, &HeaderMap::new()).is_none(), "{path}");
        }
    }

    #[test]
    fn what_a_browser_loads_first_is_small() {
        let gzipped = |assets: &[Asset]| assets.iter().map(|asset| asset.gzipped.len()).sum::<usize>();
        let all = gzipped(ASSETS) + gzipped(XTERM);
        assert!(all < 250 << 10, "{all} bytes");
        let mut asked = HeaderMap::new();
        assert!(!takes_gzip(&asked));
        for (said, takes) in [("gzip, deflate, br", true), ("br", false), ("gzip;q=0", false), ("*", false)] {
            asked.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(said));
            assert_eq!(takes_gzip(&asked), takes, "{said}");
        }
        asked.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let packed = answer("/jobs.js", &asked).unwrap();
        let plain = answer("/jobs.js", &HeaderMap::new()).unwrap();
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert!(plain.headers().get(header::CONTENT_ENCODING).is_none());
        assert_ne!(packed.headers()[header::ETAG], plain.headers()[header::ETAG]);
    }

    #[test]
    fn no_page_has_code_or_styles_within_its_markup() {
        for asset in ASSETS.iter().filter(|asset| asset.path.ends_with(".html")) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for bad in ["<style", " style=", " onclick", "javascript:", "https://", "http://"] {
                assert!(!text.contains(bad), "{}: {bad}", asset.path);
            }
        }
        for asset in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for bad in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(bad), "{}: {bad}", asset.path);
            }
        }
    }
}
