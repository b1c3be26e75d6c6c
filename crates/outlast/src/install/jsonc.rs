//! JSON as people keep it, with comments and trailing commas: read with places, changed in one place.
//!
//! A change is a splice of the text. Everything outside of it stays as it is, byte for byte. The parser's own
//! syntax tree could make changes too, but it reflows short objects and can drop a comment beside a member.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ast, parse_to_ast};
use serde_json::Value;

/// What editors accept in their settings, and no more.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BOM: &str = "\u{feff}";

/// A text with its syntax tree.
struct Document<'a> {
    text: &'a str,
    root: ast::Value<'a>,
    /// Without comments.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: true };
        let parsed = parse_to_ast(text, &collect, &OPTIONS).map_err(|error| error.to_string())?;
        let root = parsed.value.ok_or("there is no value in it")?;
        Ok(Self { text, root, tokens: parsed.tokens.unwrap_or_default() })
    }

    /// Just behind the comma after a member, if there is one.
    fn comma(&self, member: &ObjectProp<'_>) -> Option<usize> {
        let end = member.range.end;
        let next = self.tokens.get(self.tokens.partition_point(|token| token.range.start < end))?;
        matches!(next.token, Token::Comma).then_some(next.range.end)
    }

    fn splice(&self, range: Range<usize>, with: &str) -> String {
        format!("{}{with}{}", &self.text[..range.start], &self.text[range.end..])
    }
}

/// The value of a text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    Document::read(text.trim_start_matches(BOM)).map(|document| document.root.into())
}

/// Sets the value at a path of keys; objects on the way are made.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    if let Some(rest) = text.strip_prefix(BOM) {
        return set(rest, path, value).map(|changed| format!("{BOM}{changed}"));
    }
    if text.trim().is_empty() {
        return Ok(format!("{}\n", pretty(&nested(path, value), "", "  ")));
    }
    let document = Document::read(text)?;
    let unit = unit(text);
    let mut node = &document.root;
    for (depth, key) in path.iter().enumerate() {
        let ast::Value::Object(object) = node else {
            return Err(format!("{:?} is not an object", path[..depth].join(".")));
        };
        let Some(member) = member(object, key) else {
            let below = nested(&path[depth + 1..], value);
            return Ok(insert(&document, object, (key, &below), &unit));
        };
        node = &member.value;
    }
    if Value::from(node.clone()) == *value {
        return Ok(text.to_owned());
    }
    let range = node.range();
    let margin = margin(text, range.start);
    Ok(document.splice(range.start..range.end, &pretty(value, &margin, &unit)))
}

/// Removes the member at a path, and nothing else.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String, String> {
    if let Some(rest) = text.strip_prefix(BOM) {
        return remove(rest, path).map(|changed| format!("{BOM}{changed}"));
    }
    let document = Document::read(text)?;
    let Some((last, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let mut node = &document.root;
    for key in parents {
        let ast::Value::Object(object) = node else { return Ok(text.to_owned()) };
        let Some(member) = member(object, key) else { return Ok(text.to_owned()) };
        node = &member.value;
    }
    let ast::Value::Object(object) = node else { return Ok(text.to_owned()) };
    let members = &object.properties;
    let Some(at) = members.iter().rposition(|member| member.name.as_str() == *last) else {
        return Ok(text.to_owned());
    };
    let (start, comma) = (members[at].range.start, document.comma(&members[at]));
    let end = comma.unwrap_or(members[at].range.end);
    let comma_before = at.checked_sub(1).and_then(|before| document.comma(&members[before]));
    // With its own line, when it has that to itself.
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let before_is_blank = text[line_start..start].trim().is_empty();
    let rest = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let after_is_blank = text[end..rest].trim().is_empty();
    let range = if before_is_blank && after_is_blank && line_start > 0 {
        // The line break before it goes with it, so that the one after it stays.
        let start = line_start - 1;
        let start = if text[..start].ends_with('\r') { start - 1 } else { start };
        start..rest - usize::from(text[..rest].ends_with('\r'))
    } else {
        let blanks = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        match comma_before.filter(|&comma| text[comma..start].trim_matches([' ', '\t']).is_empty()) {
            // The last one on a shared line takes the blanks before it along, another one those after it.
            Some(comma) if at + 1 == members.len() => comma..end,
            _ if after_is_blank => start..end,
            _ => start..end + blanks,
        }
    };
    // The one before it may be the last now; a comma that was there only for ours goes.
    let mut changed = document.splice(range, "");
    if let (None, Some(before)) = (comma, comma_before) {
        changed.remove(before - 1);
    }
    Ok(changed)
}

/// As most readers do, the last of two members with the same key counts.
fn member<'a, 'b>(object: &'b Object<'a>, key: &str) -> Option<&'b ObjectProp<'a>> {
    object.properties.iter().rfind(|member| member.name.as_str() == key)
}

fn nested(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |below, key| serde_json::json!({ *key: below }))
}

/// Puts a member at the end of an object.
fn insert(document: &Document<'_>, object: &Object<'_>, (key, value): (&str, &Value), unit: &str) -> String {
    let (text, start, end) = (document.text, object.range.start, object.range.end);
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = |margin: &str| {
        let value = pretty(value, margin, unit).replace('\n', newline);
        format!("{}: {value}", Value::from(key))
    };
    let Some(last) = object.properties.last() else {
        let outer = margin(text, start);
        let inner = format!("{outer}{unit}");
        let member = line(&inner);
        let inside = &text[start + 1..end - 1];
        return if inside.trim().is_empty() {
            document.splice(start..end, &format!("{{{newline}{inner}{member}{newline}{outer}}}"))
        } else {
            // Only comments are in it. They stay in front.
            let at = start + 1 + inside.trim_end().len();
            document.splice(at..end - 1, &format!("{newline}{inner}{member}{newline}{outer}"))
        };
    };
    let (gap, member) = if text[start..end].contains('\n') {
        let margin = margin(text, last.range.start);
        (format!("{newline}{margin}"), line(&margin))
    } else {
        (" ".to_owned(), format!("{}: {value}", Value::from(key)))
    };
    // A trailing comma stays the custom of that file, and a comment stays on the line of what it is about.
    let comma = document.comma(last);
    let (comma_now, comma_then) = if comma.is_some() { ("", ",") } else { (",", "") };
    let at = comma.unwrap_or(last.range.end);
    let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let rest = text[at..line_end].trim_end();
    let beside = if line_end < end && is_comment(rest.trim_start()) { rest } else { "" };
    document.splice(at..at + beside.len(), &format!("{comma_now}{beside}{gap}{member}{comma_then}"))
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
        let shared = "{\n  \"a\": 1, \"outlast\": 2, // a comment\n  \"b\": 3\n}\n";
        let gone = remove(shared, &["outlast"]).unwrap();
        assert_eq!(gone, "{\n  \"a\": 1, // a comment\n  \"b\": 3\n}\n");
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
