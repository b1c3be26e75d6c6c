//! The picture on top of the README shows what the program does today: it is recorded again, and the last screens compared.

use std::process::Command;

use crate::sandbox;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo/record");
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo.svg");

/// The rows of the last screen of a picture, from the top.
fn last_screen(svg: &str) -> Vec<String> {
    let row = |id: &str| {
        let begin = format!("<g id=\"{id}\">");
        let body = svg.split_once(&begin).unwrap().1.split_once("</g>").unwrap().0;
        let texts = body.split("<text").skip(1).map(|text| {
            let text = text.split_once('>').unwrap().1.split_once("</text>").unwrap().0;
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        });
        texts.collect::<String>().trim_end().to_owned()
    };
    let last = svg.rsplit_once("<g transform").unwrap().1;
    last.split("href=\"#r").skip(1).map(|one| row(&format!("r{}", one.split('"').next().unwrap()))).collect()
}

#[test]
fn the_picture_of_the_readme_is_what_happens_today() {
    let sandbox = sandbox();
    let ran = Command::new("bash")
        .args([RECORD, sandbox.program().to_str().unwrap()])
        .env("DEMO_QUICK", "1")
        .output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let (fresh, kept) = (String::from_utf8(ran.stdout).unwrap(), std::fs::read_to_string(PICTURE).unwrap());
    let (fresh, kept) = (last_screen(&fresh), last_screen(&kept));
    assert!(kept.iter().any(|row| row.contains("Deploy to production?")), "{kept:?}");
    assert_eq!(fresh, kept, "make it anew: docs/demo/record target/debug/outlast > docs/demo.svg");
}
