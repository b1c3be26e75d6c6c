//! `outlast web`.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use outlast_cli::{WebArgs, WebShareArgs, WebVerb};
use outlast_job::clock::{millis, now_ms};
use outlast_job::wire::ScreenShot;
use outlast_job::{Failure, Kind, Outlast};
use outlast_policy::{Gate, OrderKind};
use outlast_web::{Options, Pictures, Ready, Store, qr_code, serve, ticket_for_running};
use serde_json::json;

use crate::ask::allowed;
use crate::output::Output;
use crate::svg;

/// Screens as the pictures of `outlast screen --svg`.
struct SvgPictures;

impl Pictures for SvgPictures {
    fn svg(&self, shot: &ScreenShot) -> String {
        svg::still(shot)
    }
}

pub(super) fn web(outlast: &Outlast, args: &WebArgs, out: &mut Output) -> Result<i32, Failure> {
    match &args.verb {
        None => view(outlast, args, out),
        Some(WebVerb::Share(share)) => self::share(outlast, share, out),
        Some(WebVerb::Shares(_)) => {
            list(outlast, out)?;
            Ok(0)
        }
        Some(WebVerb::Revoke(revoke)) => {
            let share = Store::open(outlast.home())?.revoke(revoke.number)?;
            if out.json {
                out.value(&json!({ "revoked": share.number, "job": share.job }));
            } else {
                out.talk(&format!("share {} of job {} shows nothing any more", share.number, share.job));
            }
            Ok(0)
        }
    }
}

fn view(outlast: &Outlast, args: &WebArgs, out: &mut Output) -> Result<i32, Failure> {
    let bind = args.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let options = Options {
        outlast: outlast.clone(),
        pictures: Arc::new(SvgPictures),
        bind,
        port: args.port,
        read_only: args.read_only,
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        behind_proxy: args.behind_proxy,
        hosts: args.hosts.clone(),
        metrics_token: args.metrics_token.clone(),
    };
    // Passwords come this way: no core file, and nobody looks into our memory.
    outlast_job::wiped::keep_memory_private();
    let shows_code = !bind.is_loopback() || !args.hosts.is_empty();
    serve(options, |ready| {
        say(ready, shows_code, out);
        if !args.no_open && !out.json {
            open_browser(outlast, &ready.url);
        }
    })?;
    Ok(0)
}

fn say(ready: &Ready, shows_code: bool, out: &mut Output) {
    if out.json {
        let said = json!({
            "address": ready.address, "url": ready.url, "terminal": ready.terminal, "read_only": ready.read_only,
            "already": ready.already,
        });
        // A whole line at once: the program that started this reads it while we serve.
        out.line(&said.to_string());
        return;
    }
    if shows_code
        && std::io::stdout().is_terminal()
        && let Some(code) = qr_code(&ready.url)
    {
        out.data(code.as_bytes());
    }
    out.line(&ready.url);
    let how = if ready.read_only { ", read-only" } else { "" };
    out.talk(&match ready.already {
        true => format!("outlast: it is served already{how}; this link gets one browser in, for 10 minutes"),
        false => {
            format!("outlast: serving{how}; this link gets one browser in, for 10 minutes; end with Ctrl-C")
        }
    });
}

/// Opens the link in a browser, if there is a desktop. It goes through a file that only the user can read: what a program is
/// started with can be read by every user of the machine.
fn open_browser(outlast: &Outlast, url: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_desktop || !std::io::stdout().is_terminal() {
        return;
    }
    let path = outlast.home().path().join("web/open.html");
    let _ = std::fs::remove_file(&path);
    let mut file = std::fs::OpenOptions::new();
    let Ok(mut file) = file.write(true).create_new(true).mode(0o600).open(&path) else { return };
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">");
    if file.write_all(page.as_bytes()).is_err() {
        return;
    }
    let mut open = Command::new("xdg-open");
    open.arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = open.spawn() {
        // Nobody waits for a browser; the child is reaped when it is done.
        let _ = std::thread::Builder::new().spawn(move || {
            let _ = child.wait();
        });
    }
}

fn share(outlast: &Outlast, args: &WebShareArgs, out: &mut Output) -> Result<i32, Failure> {
    if Gate::is_in_a_job() {
        return Err(Failure::new(Kind::Denied, "a process inside a job can't show jobs to others")
            .hint("do it in a terminal of your own"));
    }
    allowed(outlast.home(), OrderKind::Screen)?;
    let job = outlast.job(&args.job)?.handle();
    let (share, token) = Store::open(outlast.home())?.make_share(&job.to_string(), millis(args.time))?;
    let running = ticket_for_running(outlast)?;
    let address = running.as_ref().map(|ready| ready.address.as_str());
    let path = format!("/job/{job}#share={token}");
    let url = address.map(|address| format!("{address}{path}"));
    if out.json {
        out.value(&json!({
            "share": share.number, "job": share.job, "until": share.until, "url": url, "path": path,
        }));
        return Ok(0);
    }
    match url {
        Some(url) => out.line(&url),
        None => {
            out.talk(
                "outlast: nothing is served yet: start outlast web, and put its address before this path",
            );
            out.line(&path)
        }
    };
    out.talk(&format!(
        "outlast: share {} shows job {job} to anyone who has the link; take it back: outlast web revoke {0}",
        share.number
    ));
    Ok(0)
}

fn list(outlast: &Outlast, out: &mut Output) -> Result<(), Failure> {
    let shares = Store::open(outlast.home())?.shares();
    if out.json {
        out.value(&json!({ "shares": shares }));
        return Ok(());
    }
    if shares.is_empty() {
        out.talk("no job is shown to others");
    }
    for share in shares {
        let minutes = share.until.saturating_sub(now_ms()).div_ceil(60_000);
        out.line(&format!("{:<4} job {}, {minutes} min left", share.number, share.job));
    }
    Ok(())
}
