//! Known secrets in the spellings that programs print, read through every door.

use outlast_testkit::has;
use serde_json::{Value, json};

use crate::Tally;
use crate::client::{Client, Sandbox};

pub(crate) const SECRET: &str = "q7Rt zebra9/K\"m'2+x$é";

/// Programs that print the secret: what each needs, and how many characters of its output say nothing of the secret.
pub(crate) const SPELLINGS: &[(&str, &str, usize)] = &[
    ("sh", "printf %s \"$T\"", 0),
    ("bash", "printf %q \"$T\"", 0),
    ("bash", "printf %s \"${T@Q}\"", 0),
    ("bash", "LC_ALL=C; printf %q \"$T\"", 2),
    ("bash", "x=$T; LC_ALL=C; declare -p x", 13),
    ("cat", "printf %s \"$T\" | cat -v", 0),
    ("python3", "python3 -c 'import os; print(ascii(os.environ[\"T\"]))'", 1),
    ("python3", "python3 -c 'import os; print(os.environ[\"T\"].encode())'", 2),
    ("bash", "x=$T; declare -p x", 12),
    ("python3", "python3 -c 'import json,os; print(json.dumps(os.environ[\"T\"]))'", 0),
    (
        "python3",
        "python3 -c 'import json,os; print(json.dumps({\"a\": os.environ[\"T\"]}, ensure_ascii=False))'",
        6,
    ),
    ("python3", "python3 -c 'import urllib.parse,os; print(urllib.parse.quote(os.environ[\"T\"]))'", 0),
    ("python3", "python3 -c 'import urllib.parse,os; print(urllib.parse.quote_plus(os.environ[\"T\"]))'", 0),
    (
        "python3",
        "python3 -c 'import html,os; print(html.escape(os.environ[\"T\"]).replace(\"&#x27;\", \"&#39;\"))'",
        0,
    ),
    ("python3", "python3 -c 'import os; print(os.environ[\"T\"].upper())'", 0),
    ("python3", "python3 -c 'import os; print(os.environ[\"T\"].lower())'", 0),
    ("python3", "python3 -c 'import os; print(os.environ[\"T\"].encode().hex())'", 0),
    ("python3", "python3 -c 'import os; print(os.environ[\"T\"].encode().hex().upper())'", 0),
    (
        "python3",
        "python3 -c 'import os; print(\"pw: \" + chr(39) + os.environ[\"T\"].replace(chr(39), chr(39)*2) + chr(39))'",
        6,
    ),
    ("base64", "printf %s \"$T\" | base64 -w0", 0),
    ("base64", "printf %s \"u:$T\" | base64 -w0", 4),
    ("base64", "printf %s \"us:$T\" | base64 -w0", 4),
    ("base64", "printf %s \"use:$T:m\" | base64 -w0", 8),
    ("base64", "printf 'a line before it that is long enough to break the next one %s' \"$T\" | base64", 90),
    (
        "python3",
        "python3 -c 'import base64,os; print(base64.urlsafe_b64encode(os.environ[\"T\"].encode()).decode())'",
        0,
    ),
    ("sh", "printf '\\033[31m%s\\033[0m' \"$T\"", 5),
];

/// Everything by which an agent reads a job.
fn doors(client: &mut Client, handle: &Value) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    for (door, tool, arguments) in [
        ("jobs", "jobs", json!({"all": true})),
        ("read_shell", "read_shell", json!({"handle": handle, "scrollback": 50})),
        ("read_output", "read_output", json!({"handle": handle, "offset": 0})),
        ("read_output raw", "read_output", json!({"handle": handle, "raw": true, "offset": 0})),
        ("read_output tail", "read_output", json!({"handle": handle, "tail": 1})),
        ("read_output pattern", "read_output", json!({"handle": handle, "pattern": "."})),
    ] {
        said.push((door, client.call(tool, arguments).to_string()));
    }
    for part in ["screen", "transcript", "events"] {
        let uri = format!("outlast://jobs/{handle}/{part}");
        said.push((part, client.request("resources/read", json!({"uri": uri})).to_string()));
    }
    said
}

/// Whether ten characters in a row of what a program prints are in what a door says.
pub(crate) fn leaks(said: &str, printed: &str) -> bool {
    let said: String = serde_json::from_str::<Value>(said).map(|said| texts(&said)).unwrap_or_default();
    let printed: Vec<char> = printed.chars().filter(|c| !c.is_control()).collect();
    printed.windows(10).any(|piece| said.contains(&piece.iter().collect::<String>()))
}

/// All texts in a value, one after the other.
pub(crate) fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// What a line prints of the secret: asked of the same program, outside.
pub(crate) fn printed_by(line: &str, skip: usize) -> String {
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", line]).env("T", SECRET).env("LC_ALL", "C.UTF-8").env("PYTHONIOENCODING", "utf-8");
    let printed = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    let printed: String = printed.chars().filter(|c| *c != '\n').skip(skip).collect();
    assert!(printed.chars().count() >= 14, "{line} printed {printed:?}");
    printed
}

#[test]
fn a_known_secret_is_shown_by_no_door_in_no_spelling() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[]);
    command.env("DEPLOY_TOKEN", SECRET).env("LC_ALL", "C.UTF-8").env("PYTHONIOENCODING", "utf-8");
    let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
    let mut tally = Tally::default();
    for (_, line, skip) in SPELLINGS.iter().filter(|(program, ..)| has(program)) {
        let printed = printed_by(line, *skip);
        let call =
            json!({"command": format!("export T=\"$DEPLOY_TOKEN\"; {line}"), "again": true, "timeout": 30});
        let answer = client.call("run_shell_command", call);
        let handle = answer["structuredContent"]["handle"].clone();
        let mut said = vec![("answer", answer.to_string())];
        said.extend(doors(&mut client, &handle));
        for (door, said) in said {
            tally.count(&format!("{line} by {door}"), leaks(&said, &printed));
        }
    }
    tally.nothing_got_through("a known secret, in every spelling by every door");
}

/// Ways to draw a secret in another order than it is read, or to take a part of it back. `B` and `A` are its first six
/// characters and the rest of it, `S` is all of it.
const DRAWINGS: &[&str] = &[
    "printf 'XXXXXX%s\\r%s\\n' \"$A\" \"$B\"",
    "printf 'XXX%s\\r%s\\n' \"${S:3}\" \"${S:0:3}\"",
    "printf '%s\\r\\033[6@%s\\n' \"$A\" \"$B\"",
    "printf '%s-\\b\\033[P%s\\n' \"$B\" \"$A\"",
    "printf %s \"$S\"; for i in $(seq ${#S}); do printf '\\b \\b'; done; echo gone",
    "printf '\\033[7G%s\\033[1G%s\\n' \"$A\" \"$B\"",
    "for i in $(seq $((${#S} - 1)) -1 0); do printf '\\033[%dG%s' $((i + 1)) \"${S:$i:1}\"; done; echo",
    "for i in $(seq 0 2 ${#S}) $(seq 1 2 ${#S}); do printf '\\033[%dG%s' $((i + 1)) \"${S:$i:1}\"; done; echo",
    "for i in 0 4 8 12 16 20; do printf %s \"${S:$i:4}\"; sleep 0.1; done; echo",
    "printf '\\033]0;%s\\007' \"$S\"",
    "printf '\\033]8;;http://x/%s\\007x\\033]8;;\\007\\n' \"$S\"",
];

#[test]
fn a_known_secret_is_shown_by_no_door_however_it_is_drawn() {
    const DRAWN: &str = "zQ7-known+Secret/9931xx";
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[]);
    command.env("DEPLOY_TOKEN", DRAWN);
    let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
    let mut tally = Tally::default();
    for line in crate::chosen(DRAWINGS.to_vec(), 2) {
        let line = format!("S=$DEPLOY_TOKEN; B=${{S:0:6}} A=${{S:6}}; {line}");
        let answer = client.call("run_shell_command", json!({"command": line, "again": true, "timeout": 30}));
        let handle = answer["structuredContent"]["handle"].clone();
        let mut said = vec![("answer", answer.to_string())];
        said.extend(doors(&mut client, &handle));
        for (door, said) in said {
            tally.count(&format!("{line} by {door}"), leaks(&said, DRAWN));
        }
    }
    tally.nothing_got_through("a known secret, however it is drawn");
}

#[test]
fn what_one_job_was_given_no_other_job_shows() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let mut tally = Tally::default();
    let given = json!({"command": "printf %s \"$MY_TOKEN\" > file", "env": {"MY_TOKEN": SECRET}});
    client.call("run_shell_command", given);
    for line in ["cat file", "base64 file", "sed s/^/line:/ file", "cat file; echo; rev file | rev"] {
        let answer = client.call("run_shell_command", json!({"command": line, "again": true}));
        let handle = answer["structuredContent"]["handle"].clone();
        let mut said = vec![("answer", answer.to_string())];
        said.extend(doors(&mut client, &handle));
        for (door, said) in said {
            tally.count(&format!("{line} by {door}"), leaks(&said, SECRET));
        }
    }
    tally.nothing_got_through("a secret of another job");
}

/// Files that hold a secret nobody was told of, and what of them is the secret.
const FILES: &[(&str, &str)] = &[
    (
        "[default]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz12345678\n",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz12345678",
    ),
    ("password=hunter2hunter\n", "hunter2hunter"),
    ("secret=abc123def456\n", "abc123def456"),
    ("db:\n  password: tr0ub4dor&3xyz\n", "tr0ub4dor"),
    ("db:\n  password: \"tr0ub4dor-3xyz\"\n", "tr0ub4dor-3xyz"),
    ("{\"access_token\":\"ab12cd34ef56gh78\"}\n", "ab12cd34ef56gh78"),
    ("{\n  \"refresh_token\" : \"ab12cd34ef56gh78\"\n}\n", "ab12cd34ef56gh78"),
    ("{\"SecretAccessKey\": \"wJalrXUtnFEMIK7MDENG\"}\n", "wJalrXUtnFEMIK7MDENG"),
    ("machine example.org login me password correcthorse\n", "correcthorse"),
    ("machine example.org\n  login me\n  password correct-horse-9\n", "correct-horse-9"),
    ("x-api-key: 0123456789abcdef\n", "0123456789abcdef"),
    ("DBPASS=s3cr3t-value\n", "s3cr3t-value"),
    ("Server=db;User Id=me;Password=s3cr3t-value;Timeout=3\n", "s3cr3t-value"),
    (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==\n",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1",
    ),
    ("postgres://me:s3cr3t-value@db/x\n", "s3cr3t-value"),
    ("Authorization: Bearer abcdefghijklmnop1234\n", "abcdefghijklmnop1234"),
    ("api_key: 'sk_9f8e7d6c5b4a3210'\n", "9f8e7d6c5b4a3210"),
];

#[test]
fn what_credential_files_look_like_is_hidden() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let mut tally = Tally::default();
    for (text, secret) in FILES {
        std::fs::write(sandbox.path().join("file"), text).unwrap();
        let answer = client.call("run_shell_command", json!({"command": "cat file", "again": true}));
        let handle = answer["structuredContent"]["handle"].clone();
        let mut said = vec![("answer", answer.to_string())];
        said.extend(doors(&mut client, &handle));
        for (door, said) in said {
            tally.count(&format!("{text:?} by {door}"), leaks(&said, &format!("{secret:<10}")));
        }
    }
    // A private key longer than any reader looks around.
    let mut state = 1_u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char::from(alphabet[(state >> 58) as usize])
    };
    let lines: Vec<String> = (0..400).map(|_| (0..64).map(|_| digit()).collect()).collect();
    let block =
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", lines.join("\n"));
    std::fs::write(sandbox.path().join("key"), &block).unwrap();
    let answer = client.call("run_shell_command", json!({"command": "cat key", "again": true}));
    let handle = answer["structuredContent"]["handle"].clone();
    let shows = |said: &str| lines.iter().any(|line| said.contains(&line[8..40]));
    tally.count("a private key, the answer", shows(&answer.to_string()));
    for offset in (0..block.len()).step_by(4000) {
        let arguments = json!({"handle": handle, "offset": offset, "until": offset + 2000});
        let said = client.call("read_output", arguments).to_string();
        tally.count(&format!("a private key, from {offset}"), shows(&said));
    }
    tally.nothing_got_through("credential files");
}
