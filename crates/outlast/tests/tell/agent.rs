//! A stand-in for an agent in a terminal: it draws an input box and a permission dialog as Claude Code and Gemini CLI
//! do, and writes down what it was fed and what it made of it.

use std::path::PathBuf;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::panes::Server;

const AGENT: &str = r#"
import os, sys, tty, time
notes, sign, mode = open(sys.argv[1], 'a', buffering=1), sys.argv[2], sys.argv[3]
tty.setraw(0)
rows, at, dialog, newline = [''], None, mode == 'dialog', mode == 'newline'
rule = '─' * 90
HINT = '\x1b[7m \x1b[0m\x1b[2m Type your message or @path/to/file\x1b[0m'
def draw():
    out = '\x1b[?25l\x1b[2J\x1b[H'
    if dialog:
        out += f'╭{rule}╮\r\n│ Allow execution of [Shell]?\r\n│\r\n│ ● 1. Allow once\r\n│   2. Allow for this session\r\n'
        out += f'│   3. No, suggest changes (esc)\r\n╰{rule}╯\r\n'
    else:
        out += f'an agent\r\n{rule}\r\n'
        for i, row in enumerate(rows):
            out += (f'{sign} ' if i == 0 else '  ') + (row or (HINT if rows == [''] else '')) + '\r\n'
        out += f'{rule}\r\n  ? for shortcuts'
        column, line = (2, 3) if at == 0 else (2 + len(rows[-1]), 2 + len(rows))
        out += f'\x1b[{line};{column + 1}H'
    os.write(1, b'\x1b[?2004h' + out.encode())
def note(word, text=''):
    notes.write(f'{word} {text}\n')
draw()
note('ready')
pasting, held = False, b''
while True:
    held += os.read(0, 4096)
    while held:
        if held.startswith(b'\x1b[200~'):
            pasting, held = True, held[6:]
            if mode == 'switches': sign = '!'
            continue
        if held.startswith(b'\x1b[201~'): pasting, held = False, held[6:]; continue
        if held.startswith(b'\x1b[1~'): at, held = 0, held[4:]; continue
        if held[:1] == b'\x1b' and len(held) < 6: break
        key, held = held[:1], held[1:]
        while True:
            try: char = key.decode(); break
            except UnicodeDecodeError: key, held = key + held[:1], held[1:]
        if dialog:
            note('dialog-key', repr(char))
            if char == '\r': dialog = False; note('approved')
        elif char == '\r' and not pasting:
            if newline: newline = False; rows.append(''); continue
            text = '\n'.join(rows); rows, at = [''], None
            if mode == 'hangs': os.write(1, b'\x1b[2J\x1b[H'); time.sleep(1000)
            note('sent', repr(text))
            if text == 'ask': dialog = True
        elif char == '\n': rows.append('')
        elif char in '\x7f\x08': rows[-1] = rows[-1][:-1]
        elif at == 0: rows[0] = char + rows[0]
        else: rows[-1] += char
    draw()
"#;

/// The stand-in in a pane of its own server.
pub(crate) struct Agent {
    pub(crate) server: Server,
    notes: PathBuf,
}

impl Agent {
    /// `mode` is `idle`, `dialog` (it asks from the start), `newline` (it takes the first Enter for a new line), `hangs` (with an
    /// empty screen, at the first Enter) or `switches` (a person switches it to its shell mode right before a paste).
    pub(crate) fn start(sandbox: &Sandbox, sign: &str, mode: &str) -> Option<Self> {
        let notes = sandbox.root().join("notes");
        let script = sandbox.root().join("agent.py");
        std::fs::write(&script, AGENT).unwrap();
        let command = ["python3", script.to_str().unwrap(), notes.to_str().unwrap(), sign, mode];
        let server = Server::start(sandbox, &command)?;
        let agent = Self { server, notes };
        agent.wait_for("ready");
        Some(agent)
    }

    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(&self.notes).unwrap_or_default()
    }

    /// Messages that it was sent, in order.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.notes().lines().filter_map(|line| line.strip_prefix("sent ")).map(ToOwned::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(text, TEST_TIMEOUT, || {
            let notes = self.notes();
            if notes.contains(text) { Ok(()) } else { Err((notes, self.server.shows())) }
        });
    }

    /// Types as a person would.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.server.tmux(&[&["send-keys", "-t", "%0"][..], keys].concat());
    }
}
