//! JSON as people keep it, with comments and trailing commas: read into a tree with places, changed in one place.
//!
//! A change is a splice of the text. Everything outside of it stays as it is, byte for byte.

use std::ops::Range;

use serde_json::Value;

/// Deeper than any settings file is.
const DEEPEST: usize = 128;

/// A value and where it is in the text.
#[derive(Debug)]
struct Node {
    span: Range<usize>,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Plain(Value),
}

/// A key, and its value; the span begins at the key.
#[derive(Debug)]
struct Member {
    key: String,
    start: usize,
    value: Node,
    /// Just behind the comma after it, if there is one.
    comma: Option<usize>,
}

impl Node {
    fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Object(members) => {
                members.iter().map(|member| (member.key.clone(), member.value.value())).collect()
            }
            NodeKind::Array(items) => items.iter().map(Node::value).collect(),
            NodeKind::Plain(value) => value.clone(),
        }
    }

    /// As most readers do, the last of two members with the same key counts.
    fn member(&self, key: &str) -> Option<&Member> {
        let NodeKind::Object(members) = &self.kind else { return None };
        members.iter().rfind(|member| member.key == key)
    }
}

/// The value of a text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    tree(text).map(|node| node.value())
}

/// Sets the value at a path of keys; objects on the way are made.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(format!("{}\n", pretty(&nested(path, value), "", "  ")));
    }
    let root = tree(text)?;
    let unit = unit(text);
    let mut node = &root;
    for (depth, key) in path.iter().enumerate() {
        let NodeKind::Object(members) = &node.kind else {
            return Err(format!("{:?} is no object", path[..depth].join(".")));
        };
        let Some(member) = node.member(key) else {
            let below = nested(&path[depth + 1..], value);
            return Ok(insert(text, &node.span, members, (key, &below), &unit));
        };
        node = &member.value;
    }
    if node.value() == *value {
        return Ok(text.to_owned());
    }
    let margin = margin(text, node.span.start);
    Ok(splice(text, node.span.clone(), &pretty(value, &margin, &unit)))
}

/// Removes the member at a path, and nothing else.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String, String> {
    let root = tree(text)?;
    let Some((last, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let mut node = &root;
    for key in parents {
        match node.member(key) {
            Some(member) => node = &member.value,
            None => return Ok(text.to_owned()),
        }
    }
    let NodeKind::Object(members) = &node.kind else { return Ok(text.to_owned()) };
    let Some(at) = members.iter().rposition(|member| member.key == *last) else { return Ok(text.to_owned()) };
    let member = &members[at];
    let end = member.comma.unwrap_or(member.value.span.end);
    // With its own line, when it has that to itself.
    let line_start = text[..member.start].rfind('\n').map_or(0, |newline| newline + 1);
    let before_is_blank = text[line_start..member.start].trim().is_empty();
    let rest = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let after_is_blank = text[end..rest].trim().is_empty();
    let range = if before_is_blank && after_is_blank && line_start > 0 {
        // The line break before it goes with it, so that the one after it stays.
        let start = line_start - 1;
        let start = if text[..start].ends_with('\r') { start - 1 } else { start };
        start..rest - usize::from(text[..rest].ends_with('\r'))
    } else {
        let blanks = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        let before = at.checked_sub(1).and_then(|before| members[before].comma);
        match before.filter(|&comma| text[comma..member.start].trim_matches([' ', '\t']).is_empty()) {
            // The last one on a shared line takes the blanks before it along, another one those after it.
            Some(comma) if at + 1 == members.len() => comma..end,
            _ if after_is_blank => member.start..end,
            _ => member.start..end + blanks,
        }
    };
    // The one before it may be the last now; a comma that was there only for ours goes.
    let mut changed = splice(text, range, "");
    if member.comma.is_none()
        && let Some(comma) = at.checked_sub(1).and_then(|before| members[before].comma)
    {
        changed.remove(comma - 1);
    }
    Ok(changed)
}

fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

fn nested(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |below, key| serde_json::json!({ *key: below }))
}

/// Puts a member at the end of an object.
fn insert(
    text: &str,
    object: &Range<usize>,
    members: &[Member],
    (key, value): (&str, &Value),
    unit: &str,
) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = |margin: &str| {
        let value = pretty(value, margin, unit).replace('\n', newline);
        format!("{}: {value}", Value::from(key))
    };
    let Some(last) = members.last() else {
        let outer = margin(text, object.start);
        let inner = format!("{outer}{unit}");
        let member = line(&inner);
        let inside = &text[object.start + 1..object.end - 1];
        return if inside.trim().is_empty() {
            splice(text, object.clone(), &format!("{{{newline}{inner}{member}{newline}{outer}}}"))
        } else {
            // Only comments are in it. They stay in front.
            let at = object.start + 1 + inside.trim_end().len();
            splice(text, at..object.end - 1, &format!("{newline}{inner}{member}{newline}{outer}"))
        };
    };
    let margin = margin(text, last.start);
    let one_line = !text[object.clone()].contains('\n');
    let member = line(&margin);
    let gap = if one_line { " ".to_owned() } else { format!("{newline}{margin}") };
    let member = if one_line { format!("{}: {value}", Value::from(key)) } else { member };
    // A trailing comma stays the custom of that file, and a comment stays on the line of what it is about.
    let (comma_now, comma_then) = if last.comma.is_some() { ("", ",") } else { (",", "") };
    let at = last.comma.unwrap_or(last.value.span.end);
    let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let rest = text[at..line_end].trim_end();
    let comment = if line_end < object.end && is_comment(rest.trim_start()) { rest } else { "" };
    splice(text, at..at + comment.len(), &format!("{comma_now}{comment}{gap}{member}{comma_then}"))
}

/// Whether the rest of a line is one comment and nothing else.
fn is_comment(rest: &str) -> bool {
    rest.starts_with("//")
        || rest.starts_with("/*") && rest.find("*/").is_some_and(|end| end + 2 == rest.len())
}

/// The white space at the start of the line in which something is.
fn margin(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
}

/// What one step of indentation is in that text.
fn unit(text: &str) -> String {
    let indented =
        text.lines().find(|line| line.starts_with([' ', '\t']) && line.trim_start().starts_with('"'));
    match indented {
        Some(line) if line.starts_with('\t') => "\t".to_owned(),
        Some(line) => line[..line.len() - line.trim_start_matches(' ').len()].to_owned(),
        None => "  ".to_owned(),
    }
}

/// A value over several lines; short lists stay on one.
fn pretty(value: &Value, margin: &str, unit: &str) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner = format!("{margin}{unit}");
            let members: Vec<String> = map
                .iter()
                .map(|(key, value)| {
                    format!("{inner}{}: {}", Value::from(key.as_str()), pretty(value, &inner, unit))
                })
                .collect();
            format!("{{\n{}\n{margin}}}", members.join(",\n"))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

fn tree(text: &str) -> Result<Node, String> {
    let mut reader = Reader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    reader.blanks()?;
    let node = reader.node(0)?;
    reader.blanks()?;
    if reader.at < text.len() { Err(reader.wrong("the end")) } else { Ok(node) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, wanted: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("line {line}: {wanted} was expected")
    }

    /// White space and comments.
    fn blanks(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let skipped = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) if end >= 2 => end + 2,
                    _ => return Err(self.wrong("the end of a comment")),
                }
            } else {
                0
            };
            self.at += skipped + comment;
            if comment == 0 {
                return Ok(());
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, String> {
        if depth > DEEPEST {
            return Err(self.wrong("something less deep"));
        }
        let start = self.at;
        let kind = match self.next() {
            Some(b'{') => NodeKind::Object(self.members(depth)?),
            Some(b'[') => NodeKind::Array(self.items(depth)?),
            Some(b'"') => NodeKind::Plain(Value::String(self.string()?)),
            _ => {
                let word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                let length = self.rest().find(|c| !word(c)).unwrap_or(self.rest().len());
                let value =
                    serde_json::from_str(&self.rest()[..length]).map_err(|_| self.wrong("a value"))?;
                self.at += length;
                NodeKind::Plain(value)
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn string(&mut self) -> Result<String, String> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'"' => {
                    let value = serde_json::from_str(&self.text[self.at..=end])
                        .map_err(|_| self.wrong("a string"))?;
                    self.at = end + 1;
                    return Ok(value);
                }
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        Err(self.wrong("the end of a string"))
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, String> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        loop {
            self.blanks()?;
            match self.next() {
                Some(b'}') => break,
                Some(b'"') if members.last().is_none_or(|last| last.comma.is_some()) => {}
                _ => return Err(self.wrong("a key, a comma or }")),
            }
            let start = self.at;
            let key = self.string()?;
            self.blanks()?;
            if self.next() != Some(b':') {
                return Err(self.wrong(":"));
            }
            self.at += 1;
            self.blanks()?;
            let value = self.node(depth + 1)?;
            let comma = self.comma()?;
            members.push(Member { key, start, value, comma });
        }
        self.at += 1;
        Ok(members)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node>, String> {
        let mut items = Vec::new();
        let mut more = true;
        self.at += 1;
        loop {
            self.blanks()?;
            if self.next() == Some(b']') {
                break;
            }
            if !more {
                return Err(self.wrong("a comma or ]"));
            }
            items.push(self.node(depth + 1)?);
            more = self.comma()?.is_some();
        }
        self.at += 1;
        Ok(items)
    }

    /// Passes a comma; says where it ends.
    fn comma(&mut self) -> Result<Option<usize>, String> {
        self.blanks()?;
        let found = self.next() == Some(b',');
        self.at += usize::from(found);
        Ok(found.then_some(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(text: &str) -> String {
        set(text, &["mcpServers", "outlast"], &json!({"command": "/x/outlast", "args": ["mcp"]})).unwrap()
    }

    #[test]
    fn comments_and_everything_else_stay() {
        let texts = [
            "{}",
            "{ }\n",
            "{\n  // nothing yet\n}\n",
            "{\n  // a\n  \"theme\": \"dark\", /* b */\n}\n",
            "{\n\t\"mcpServers\": {\n\t\t\"other\": { \"command\": \"x\" } // mine\n\t}\n}\n",
            "{\"mcpServers\": {\"other\": {\"command\": \"a,}//b\"}}, \"z\": [1, 2,],}",
            "{\r\n  \"mcpServers\": {\r\n    \"other\": {}\r\n  }\r\n}\r\n",
            "{\n  \"mcpServers\": {}\n}\n",
            "\u{feff}{\"a\": 1}",
        ];
        for text in texts {
            let with = put(text);
            let mut wanted = parse(text).unwrap();
            wanted["mcpServers"]["outlast"] = json!({"command": "/x/outlast", "args": ["mcp"]});
            assert_eq!(parse(&with).unwrap(), wanted, "{with}");
            assert_eq!(put(&with), with, "a second time changes nothing");
            let without = remove(&with, &["mcpServers", "outlast"]).unwrap();
            wanted["mcpServers"].as_object_mut().unwrap().remove("outlast");
            assert_eq!(parse(&without).unwrap(), wanted, "{without}");
            if parse(text).unwrap()["mcpServers"].as_object().is_some_and(|servers| !servers.is_empty()) {
                assert_eq!(without, text, "there and back is nothing");
            }
            for comment in ["// nothing yet", "// a", "/* b */", "// mine"] {
                assert_eq!(text.contains(comment), without.contains(comment), "{without}");
            }
        }
    }

    #[test]
    fn ours_in_the_middle_goes_alone() {
        let text = "{\n  \"s\": {\n    \"a\": 1,\n    \"outlast\": {\n      \"x\": 2\n    },\n    \"b\": 3\n  }\n}\n";
        let gone = remove(text, &["s", "outlast"]).unwrap();
        assert_eq!(gone, "{\n  \"s\": {\n    \"a\": 1,\n    \"b\": 3\n  }\n}\n");
        assert_eq!(remove("{\"outlast\": 1, \"b\": 2}", &["outlast"]).unwrap(), "{\"b\": 2}");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in
            ["{", "{\"a\"}", "{\"a\": 1 \"b\": 2}", "[1 2]", "{\"a\": nul}", "{} x", "/* ", "{\"a\": \"\\"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(set("{\"a\": [1]}", &["a", "b"], &json!(1)).is_err());
        assert!(set("[]", &["a"], &json!(1)).is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
