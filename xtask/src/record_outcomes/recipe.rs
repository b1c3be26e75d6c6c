//! Recipes of recorded runs: many in a file, each begun by `== NAME`.
//!
//! A line each: `tool NAME`, `file PATH` (its text follows, each line after `| `), `setup COMMAND`, `size 100x30`, `pipe` (no
//! terminal), `run COMMAND`, `exit CODE` (0 if not given), `expect WORD=COUNT ...` (what is true of the run), `first TEXT`
//! (what the first real error is known by, for example `src/lib.rs:3`), `judge KIND COMMAND`.

use std::collections::BTreeMap;

/// One run.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    pub(super) name: String,
    pub(super) tool: String,
    pub(super) files: Vec<(String, String)>,
    pub(super) setup: Vec<String>,
    pub(super) size: String,
    pub(super) pipe: bool,
    pub(super) run: String,
    pub(super) exit: i64,
    pub(super) expect: BTreeMap<String, u64>,
    pub(super) first: Option<String>,
    pub(super) judge: Option<(String, String)>,
}

/// Reads all recipes of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Recipe>, String> {
    let mut recipes: Vec<Recipe> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            recipes.push(Recipe { name: name.into(), size: "100x30".into(), ..Recipe::default() });
            continue;
        }
        let recipe = recipes.last_mut().ok_or("a file of recipes begins with == NAME")?;
        step(recipe, line).ok_or_else(|| format!("{}: not a step of a recipe: {line}", recipe.name))?;
    }
    Ok(recipes)
}

fn step(recipe: &mut Recipe, line: &str) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "tool" => recipe.tool = rest.into(),
        "file" => recipe.files.push((rest.into(), String::new())),
        "|" => {
            let (_, text) = recipe.files.last_mut()?;
            text.push_str(&rest.replace("<TAB>", "\t"));
            text.push('\n');
        }
        "setup" => recipe.setup.push(rest.into()),
        "size" => recipe.size = rest.into(),
        "pipe" => recipe.pipe = true,
        "run" => recipe.run = rest.into(),
        "exit" => recipe.exit = rest.parse().ok()?,
        "expect" => {
            for pair in rest.split_whitespace() {
                let (word, count) = pair.split_once('=')?;
                recipe.expect.insert(word.into(), count.parse().ok()?);
            }
        }
        "first" => recipe.first = Some(rest.into()),
        "judge" => {
            let (kind, command) = rest.split_once(' ')?;
            recipe.judge = Some((kind.into(), command.into()));
        }
        _ => return None,
    }
    Some(())
}
