//! The names in the user's ssh configuration: what a person calls their machines already. Only names are read; the rest is for ssh itself.

use std::path::{Path, PathBuf};

use outlast_job::settings::read_file;

/// How deep files include others.
const MAX_DEPTH: usize = 8;

/// Every plain name of a `Host` line.
#[must_use]
pub fn names() -> Vec<String> {
    let Some(home) = std::env::var_os("HOME").filter(|home| !home.is_empty()) else { return Vec::new() };
    let folder = Path::new(&home).join(".ssh");
    let mut names = Vec::new();
    read(&folder.join("config"), &folder, MAX_DEPTH, &mut names);
    names.sort();
    names.dedup();
    names
}

fn read(file: &Path, folder: &Path, depth: usize, names: &mut Vec<String>) {
    let Ok(text) = read_file(file) else { return };
    for line in text.lines() {
        let line = line.trim();
        let (key, rest) = line.split_once([' ', '\t', '=']).unwrap_or((line, ""));
        let words = rest.split_whitespace().map(|word| word.trim_matches('"')).filter(|word| *word != "=");
        if key.eq_ignore_ascii_case("host") {
            let is_name = |word: &&str| !word.contains(['*', '?', '!']);
            names.extend(words.filter(is_name).map(ToOwned::to_owned));
        } else if key.eq_ignore_ascii_case("include") && depth > 0 {
            for word in words {
                for file in included(word, folder) {
                    read(&file, folder, depth - 1, names);
                }
            }
        }
    }
}

/// The files of an `Include`: a path from the folder of the configuration, whose last part may be a pattern with one `*`.
fn included(word: &str, folder: &Path) -> Vec<PathBuf> {
    let path = match word.strip_prefix("~/") {
        Some(rest) => folder.parent().map_or_else(|| folder.join(rest), |home| home.join(rest)),
        None => folder.join(word),
    };
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let Some((before, after)) = name.split_once('*') else { return vec![path] };
    let entries = path.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    let mut files: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_found_also_in_included_files() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".ssh");
        std::fs::create_dir_all(folder.join("conf.d")).unwrap();
        std::fs::write(
            folder.join("config"),
            "Include conf.d/*.conf\nHost gpu1 gpu2 *.lan !x\n  User me\nhost=box\nMatch host y\n",
        )
        .unwrap();
        std::fs::write(folder.join("conf.d/a.conf"), "Host \"inner\"\n").unwrap();
        std::fs::write(folder.join("conf.d/b.txt"), "Host not-this\n").unwrap();
        let mut names = Vec::new();
        read(&folder.join("config"), &folder, MAX_DEPTH, &mut names);
        assert_eq!(names, ["inner", "gpu1", "gpu2", "box"]);
    }
}
