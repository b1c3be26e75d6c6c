//! The seven tools as a model sees them: names, descriptions, parameters.
//!
//! Schemas are written by hand and stay plain: no null, no union, no format, nothing forbidden. Clients
//! differ in what they make of more than that. A handle is declared as text, so that a name fits, and a
//! number is taken too.

mod schema;
mod texts;

use std::collections::HashMap;
use std::sync::Arc;

use outlast_job::Failure;
use rmcp::model::{Tool, ToolAnnotations};

use crate::arguments::Arguments;
use crate::calls::Call;
use crate::engine::Engine;
use crate::options::Profile;
use crate::profiles;
use crate::words::Words;
pub(crate) use schema::{Field, object};
use schema::{list_schema, output_schema};

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Looks, and changes nothing.
    Reads,
    /// Ends something.
    Ends,
    /// Anything can come of it.
    Acts,
}

/// What a tool answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// What happened to one job.
    Job,
    /// A list of jobs.
    List,
}

/// Makes a call of the arguments of a tool.
pub(crate) type Parse = fn(&Engine, &Arguments) -> Result<Call, Failure>;

/// A tool's definition.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    /// How its arguments become a call. There is no other way to one, so no tool is carried out that the gate
    /// was not asked about.
    pub(crate) parse: Parse,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) answers: Answers,
    pub(crate) fields: Vec<Field>,
    /// Parameters that are taken too, and not told of: other names, and what few need.
    pub(crate) also: &'static [&'static str],
}

impl Definition {
    fn tool(mut self, words: Words) -> Tool {
        if self.effect != Effect::Reads {
            self.fields.push(Field::flag("confirmed", "The user agreed"));
        }
        let annotations = ToolAnnotations::new()
            .read_only(self.effect == Effect::Reads)
            .destructive(self.effect != Effect::Reads)
            .idempotent(self.effect != Effect::Acts)
            .open_world(self.effect == Effect::Acts);
        let output = match self.answers {
            Answers::Job => output_schema(),
            Answers::List => list_schema(),
        };
        let tool = Tool::new(self.name, words.described(self.description), Arc::new(object(&self.fields)))
            .with_title(self.title)
            .with_annotations(annotations);
        match words.0 {
            Profile::Plain | Profile::Codex | Profile::Claude => {
                tool.with_raw_output_schema(Arc::new(output))
            }
            // Ten tools: with a schema each, the list would be larger than 10 KB, and Gemini CLI makes no use of them.
            Profile::Gemini => tool,
        }
    }
}

/// All tools of a profile, in the order in which they are listed.
pub(crate) fn definitions(profile: Profile) -> Vec<Definition> {
    let plain = texts::seven();
    match profile {
        Profile::Plain => plain,
        Profile::Gemini => profiles::gemini::extend(plain),
        Profile::Codex => profiles::codex::replace(plain),
        Profile::Claude => profiles::claude::replace(plain),
    }
}

/// The same, as a client is told of them.
pub(crate) fn of(profile: Profile) -> Vec<Tool> {
    let words = Words(profile);
    definitions(profile).into_iter().map(|definition| definition.tool(words)).collect()
}

/// The parameters of each tool that are taken and not told of.
pub(crate) fn untold(profile: Profile) -> HashMap<&'static str, &'static [&'static str]> {
    definitions(profile).iter().map(|tool| (tool.name, tool.also)).collect()
}

/// The names of a tool's parameters.
pub(crate) fn parameters(tool: &Tool) -> Vec<String> {
    let properties = tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new key says here whether models are told of it. What models are told of must be a key.
    #[test]
    fn a_model_is_told_the_names_of_keys() {
        let not_told = ["Insert", "KeypadEnter"];
        let tools = of(Profile::Plain);
        let text = serde_json::to_string(&tools).unwrap();
        let told = text.split("After input: ").nth(1).and_then(|rest| rest.split(" ...").next()).unwrap();
        let told: Vec<&str> = told.split_whitespace().collect();
        for name in outlast_stream::Key::named() {
            assert_eq!(told.contains(&name), !not_told.contains(&name), "{name} in {told:?}");
        }
        for name in told.into_iter().filter(|name| *name != "F1-F12") {
            assert!(outlast_stream::Key::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn schemas_are_plain() {
        for profile in [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude] {
            for tool in of(profile) {
                let text = serde_json::to_string(&tool).unwrap();
                for word in ["\"format\"", "null", "anyOf", "oneOf", "additionalProperties\":false"] {
                    assert!(!text.contains(word), "{} has {word}", tool.name);
                }
                assert!(tool.description.is_some_and(|text| !text.is_empty()));
            }
        }
    }

    /// A description that names a tool otherwise than `@NAME`, or one that the profile does not have, sends the model to a
    /// tool that is not there.
    #[test]
    fn descriptions_name_only_tools_of_the_profile() {
        let profiles = [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude];
        let names_of = |profile| definitions(profile).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        let anywhere: Vec<&str> = profiles.into_iter().flat_map(names_of).collect();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
        for profile in profiles {
            let own = names_of(profile);
            for Definition { name, description, .. } in definitions(profile) {
                let words = description.split(|c: char| !is_part(c)).filter(|word| !word.is_empty());
                for word in words {
                    let Some(tool) = word.strip_prefix('@') else {
                        // Names that are ordinary words as well.
                        let is_plain = ["jobs", "kill", "Bash"].contains(&word);
                        assert!(is_plain || !anywhere.contains(&word), "{name}: write @NAME for {word}");
                        continue;
                    };
                    let called = Words(profile).described(&format!("@{tool}"));
                    assert!(own.contains(&called.as_str()), "{profile:?}: {name} names {called}");
                }
            }
        }
    }

    #[test]
    fn a_list_of_tools_is_small() {
        for profile in [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude] {
            let bytes = serde_json::to_vec(&of(profile)).unwrap().len();
            assert!(bytes <= 10 << 10, "{profile:?}: {bytes} bytes");
        }
    }

    #[test]
    fn names_are_told_once() {
        for profile in [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude] {
            let mut names: Vec<String> = of(profile).iter().map(|tool| tool.name.to_string()).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
