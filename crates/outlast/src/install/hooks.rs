//! Hooks of agents, by which they tell how they are: where each agent keeps them, and how ours are put in and taken out.

use std::path::{Path, PathBuf};

use outlast_cli::{Client, Scope};
use outlast_job::Failure;
use outlast_protocol::AgentState;
use serde_json::{Value, json};

use super::jsonc;
use super::settings::write_new;

/// Its own line in a plugin file, by which it is known as ours.
const PLUGIN_MARK: &str = "// Written by outlast install --hooks, removed by outlast uninstall.";
const HOOKS: &str = "hooks";
/// Has a hook wait for what wakes the agent.
const WAKE: &str = "--wake";
/// For so long; the next time that the agent is idle, another one waits.
const WAKE_SECONDS: u32 = 7 * 24 * 3600;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It is as it should be now.
    Yes,
    /// It was so already.
    No,
}

/// What is kept of a file that is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of it: it is only said what would be done.
    Everything,
    /// A copy beside it, as it was.
    Copy,
    /// Nothing: a copy was made a moment ago, before another change.
    Nothing,
}

impl Keep {
    /// For a change of a file of which a copy may have been made already.
    pub(crate) fn of(dry_run: bool, copied: bool) -> Self {
        match (dry_run, copied) {
            (true, _) => Self::Everything,
            (false, true) => Self::Nothing,
            (false, false) => Self::Copy,
        }
    }
}

/// Which event of an agent means what.
fn events(client: Client) -> &'static [(&'static str, AgentState)] {
    match client {
        Client::Claude => &[
            ("UserPromptSubmit", AgentState::Working),
            ("PostToolUse", AgentState::Working),
            ("Notification", AgentState::Asks),
            ("Stop", AgentState::Idle),
            ("SessionEnd", AgentState::Done),
        ],
        Client::Codex => &[
            ("UserPromptSubmit", AgentState::Working),
            ("PostToolUse", AgentState::Working),
            ("PermissionRequest", AgentState::Asks),
            ("Stop", AgentState::Idle),
        ],
        Client::Gemini => &[
            ("BeforeAgent", AgentState::Working),
            ("AfterTool", AgentState::Working),
            ("Notification", AgentState::Asks),
            ("AfterAgent", AgentState::Idle),
            ("SessionEnd", AgentState::Done),
        ],
        Client::Opencode
        | Client::Cursor
        | Client::Vscode
        | Client::Zed
        | Client::Windsurf
        | Client::Copilot
        | Client::Qwen
        | Client::Amp
        | Client::Crush
        | Client::ClaudeDesktop => &[],
    }
}

/// Where an agent keeps hooks; none for those that have none that we know.
pub(crate) fn file(client: Client, scope: Scope) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let (folder, file) = match client {
        Client::Claude => (".claude", "settings.json"),
        Client::Codex => (".codex", "hooks.json"),
        Client::Gemini => (".gemini", "settings.json"),
        Client::Opencode => (".opencode", "plugin/outlast.js"),
        Client::Cursor
        | Client::Vscode
        | Client::Zed
        | Client::Windsurf
        | Client::Copilot
        | Client::Qwen
        | Client::Amp
        | Client::Crush
        | Client::ClaudeDesktop => return None,
    };
    if scope == Scope::Project {
        return Some(std::env::current_dir().ok()?.join(folder).join(file));
    }
    let home = set("HOME")?;
    Some(match client {
        Client::Claude => set("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(folder)).join(file),
        Client::Codex => set("CODEX_HOME").unwrap_or_else(|| home.join(folder)).join(file),
        Client::Opencode => {
            set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("opencode").join(file)
        }
        Client::Gemini
        | Client::Cursor
        | Client::Vscode
        | Client::Zed
        | Client::Windsurf
        | Client::Copilot
        | Client::Qwen
        | Client::Amp
        | Client::Crush
        | Client::ClaudeDesktop => home.join(folder).join(file),
    })
}

/// Puts our hooks in.
pub(crate) fn install(
    client: Client,
    path: &Path,
    program: &[String],
    keep: Keep,
) -> Result<Changed, Failure> {
    let text = read(path)?;
    let wanted = if client == Client::Opencode {
        plugin(program)
    } else {
        events(client).iter().try_fold(text.clone().unwrap_or_default(), |text, (event, state)| {
            with_group(path, &text, event, &group(client, *state, |state| command(program, client, state)))
        })?
    };
    write(path, text.as_deref(), &wanted, keep)
}

/// Takes them out again.
pub(crate) fn uninstall(client: Client, path: &Path, keep: Keep) -> Result<Changed, Failure> {
    let Some(text) = read(path)? else { return Ok(Changed::No) };
    if client == Client::Opencode {
        if !text.starts_with(PLUGIN_MARK) {
            return Ok(Changed::No);
        }
        if keep != Keep::Everything {
            std::fs::remove_file(path).map_err(|error| broken(path, "removed", &error))?;
        }
        return Ok(Changed::Yes);
    }
    let mut without = text.clone();
    for (event, _) in events(client) {
        without = without_hook(path, &without, event)?;
    }
    write(path, Some(&text), &without, keep)
}

/// The command line of a hook.
fn command(program: &[String], client: Client, state: AgentState) -> String {
    let words = program.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    format!("{} hook {} {state}", words.collect::<Vec<_>>().join(" "), client.name())
}

/// The hooks of an agent for one of its events; `line` words the command that tells a state.
fn group(client: Client, state: AgentState, line: impl Fn(AgentState) -> String) -> Value {
    let mut hooks = vec![json!({ "type": "command", "command": line(state) })];
    // Claude Code lets a hook wait in the background, and wakes its model when that one ends with 2.
    if client == Client::Claude && state == AgentState::Idle {
        let command = format!("{} {WAKE}", line(state));
        hooks.push(
            json!({ "type": "command", "command": command, "asyncRewake": true, "timeout": WAKE_SECONDS }),
        );
    }
    json!({ HOOKS: hooks })
}

/// The hooks of an agent as a file of their own, for a plugin. A missing program is not an error: the plugin may be older or younger than it.
pub(crate) fn all(client: Client, program: &[String]) -> Value {
    let hook = |state: AgentState| {
        let name = program.first().map_or("outlast", String::as_str).replace('\'', "'\\''");
        let line = |state| format!("! command -v '{name}' >/dev/null || {}", command(program, client, state));
        json!([group(client, state, line)])
    };
    let hooks: serde_json::Map<String, Value> =
        events(client).iter().map(|(event, state)| ((*event).to_owned(), hook(*state))).collect();
    json!({ HOOKS: hooks })
}

/// Whether a group of hooks is ours.
fn is_ours(group: &Value) -> bool {
    let commands = group[HOOKS].as_array().into_iter().flatten();
    let ours = |command: &str| command.contains("outlast") && command.contains(" hook ");
    commands.filter_map(|hook| hook["command"].as_str()).any(ours)
}

fn groups(path: &Path, text: &str, event: &str) -> Result<Vec<Value>, Failure> {
    let value = if text.trim().is_empty() {
        json!({})
    } else {
        jsonc::parse(text).map_err(|error| refusal(path, &error))?
    };
    match &value[HOOKS][event] {
        Value::Null => Ok(Vec::new()),
        Value::Array(groups) => Ok(groups.clone()),
        _ => Err(refusal(path, &format!("its hooks for {event} are not a list"))),
    }
}

fn with_group(path: &Path, text: &str, event: &str, group: &Value) -> Result<String, Failure> {
    let before = groups(path, text, event)?;
    if before.contains(group) {
        return Ok(text.to_owned());
    }
    let mut groups: Vec<Value> = before.into_iter().filter(|group| !is_ours(group)).collect();
    groups.push(group.clone());
    jsonc::set(text, &[HOOKS, event], &groups.into()).map_err(|error| refusal(path, &error))
}

fn without_hook(path: &Path, text: &str, event: &str) -> Result<String, Failure> {
    let before = groups(path, text, event)?;
    let left: Vec<Value> = before.iter().filter(|group| !is_ours(group)).cloned().collect();
    if left.len() == before.len() {
        return Ok(text.to_owned());
    }
    let changed = if left.is_empty() {
        jsonc::remove(text, &[HOOKS, event])
    } else {
        jsonc::set(text, &[HOOKS, event], &left.into())
    };
    changed.map_err(|error| refusal(path, &error))
}

/// opencode has no hooks that are commands, but plugins that hear of every event.
fn plugin(program: &[String]) -> String {
    let program = Value::from(program.to_vec());
    format!(
        "{PLUGIN_MARK}
import {{ spawn }} from 'node:child_process';

const [program, ...args] = {program};
const tell = (state, input) => {{
  const child = spawn(program, [...args, 'hook', 'opencode', state], {{ stdio: ['pipe', 'ignore', 'ignore'] }});
  child.on('error', () => {{}});
  child.stdin.on('error', () => {{}});
  child.stdin.end(JSON.stringify(input));
}};

// Waits for what a job has to tell, and prompts the conversation that last used our tools, or was last active.
let waiting, active, ours;
const wait = (client, directory) => {{
  if (waiting) return;
  const child = spawn(program, [...args, 'hook', 'opencode', 'idle', '{WAKE}'], {{ stdio: ['pipe', 'ignore', 'pipe'] }});
  waiting = child;
  child.on('error', () => {{ waiting = undefined; }});
  child.on('close', () => {{ waiting = undefined; }});
  child.stdin.on('error', () => {{}});
  // A single prompt (opencode run) ends all the same.
  for (const held of [child, child.stdin, child.stderr]) held.unref?.();
  let text = '';
  child.stderr.on('data', async (chunk) => {{
    text += chunk;
    if (!text.endsWith('\\n')) return;
    const parts = [{{ type: 'text', text: text.trim() }}];
    const path = {{ id: ours ?? active }};
    const done = await client.session.promptAsync({{ path, query: {{ directory }}, body: {{ parts }} }}).catch((error) => ({{ error }}));
    // Without a word it is told again.
    child.stdin.end(done.error ? '' : 'taken\\n');
  }});
}};

export const Outlast = async ({{ client, directory }}) => ({{
  'tool.execute.after': async (call) => {{
    if (call.tool.startsWith('outlast')) ours = call.sessionID;
  }},
  event: async ({{ event }}) => {{
    if (event.type === 'session.idle') {{
      active = event.properties?.sessionID ?? active;
      wait(client, directory);
    }}
    if (event.type === 'session.deleted' && event.properties?.info?.id === ours) ours = undefined;
    const input = {{ cwd: directory, message: event.properties?.permission ?? event.properties?.title }};
    if (event.type === 'session.status' && event.properties?.status?.type === 'busy') tell('working', input);
    if (event.type === 'session.idle') tell('idle', input);
    if (event.type === 'permission.asked' || event.type === 'permission.updated') tell('asks', input);
    if (event.type === 'permission.replied') tell('working', input);
  }},
  dispose: async () => {{
    waiting?.kill();
    tell('done', {{ cwd: directory }});
  }},
}});
"
    )
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(broken(path, "read", &error)),
    }
}

fn write(path: &Path, before: Option<&str>, text: &str, keep: Keep) -> Result<Changed, Failure> {
    if before == Some(text) {
        return Ok(Changed::No);
    }
    if keep != Keep::Everything {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| broken(folder, "made", &error))?;
        if before.is_some() && keep == Keep::Copy {
            let mut backup = path.as_os_str().to_owned();
            backup.push(".outlast-backup");
            std::fs::copy(path, &backup).map_err(|error| broken(path, "backed up", &error))?;
        }
        // A file that is a link stays one; and it is there as a whole, or as it was.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let fresh = target.with_extension("outlast-new");
        let _ = std::fs::remove_file(&fresh);
        write_new(&fresh, text)
            .and_then(|()| match std::fs::metadata(&target) {
                Ok(old) => std::fs::set_permissions(&fresh, old.permissions()),
                Err(_) => Ok(()),
            })
            .and_then(|()| std::fs::rename(&fresh, &target))
            .map_err(|error| broken(path, "written", &error))?;
    }
    Ok(Changed::Yes)
}

fn broken(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::system(format!("{} can't be {what}", path.display()), error)
}

fn refusal(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} is left as it is: {why}", path.display()))
        .hint("correct the file, and try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Vec<String> {
        vec!["/opt/it's/outlast".into(), "--home".into(), "/h".into()]
    }

    #[test]
    fn hooks_come_and_go_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        for client in [Client::Claude, Client::Codex, Client::Gemini, Client::Opencode] {
            let path = folder.path().join(client.name()).join("file");
            assert_eq!(install(client, &path, &program(), Keep::Everything).unwrap(), Changed::Yes);
            assert!(!path.exists(), "a dry run writes nothing");
            assert_eq!(install(client, &path, &program(), Keep::Copy).unwrap(), Changed::Yes);
            assert_eq!(install(client, &path, &program(), Keep::Copy).unwrap(), Changed::No);
            assert!(std::fs::read_to_string(&path).unwrap().contains("outlast"));
            assert_eq!(uninstall(client, &path, Keep::Copy).unwrap(), Changed::Yes);
            assert_eq!(uninstall(client, &path, Keep::Copy).unwrap(), Changed::No);
        }
        let path = folder.path().join("theirs.json");
        let theirs = "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }]\n  },\n  \"x\": 1\n}\n";
        std::fs::write(&path, theirs).unwrap();
        install(Client::Claude, &path, &program(), Keep::Copy).unwrap();
        let both = std::fs::read_to_string(&path).unwrap();
        assert!(
            both.contains("say done") && both.contains("hook claude idle") && both.contains("// mine"),
            "{both}"
        );
        uninstall(Client::Claude, &path, Keep::Copy).unwrap();
        let left = jsonc::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(left, jsonc::parse(theirs).unwrap());
    }

    #[test]
    fn the_plugin_is_a_program() {
        let plugin = plugin(&program());
        // A string that is broken over two lines is none.
        assert!(
            plugin.lines().all(|line| line.matches('\'').count() % 2 == 0 || line.contains("it's")),
            "{plugin}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.mjs");
        std::fs::write(&path, &plugin).unwrap();
        if let Ok(said) = std::process::Command::new("node").arg("--check").arg(&path).output() {
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        }
    }

    #[test]
    fn a_shell_runs_exactly_the_command() {
        let line = command(&program(), Client::Gemini, AgentState::Asks).replace("/opt/it", "echo /opt/it");
        let line = line.replacen("'echo ", "echo '", 1);
        let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout).trim(),
            "/opt/it's/outlast --home /h hook gemini asks"
        );
    }
}
