//! Parses the text of a configuration. Each error has the line and the key, and says how to fix it. It uses the terms
//! of TOML files, not those of the parser.
//!
//! The keys and the types of their values come from the schema of [`Config`]. The text is first compared with this
//! schema. The parser of the structs (serde) runs last. Then it can only refuse values that have a parser of their own,
//! such as addresses, and this parser gives the reason.

use std::ops::Range;
use std::path::Path;

use schemars::schema_for;
use serde_json::Value as Schema;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;

/// Terms of the TOML parser, each with a plain replacement for messages.
const PLAIN_TERMS: [(&str, &str); 7] = [
    ("inline table", "section in braces"),
    ("multi-line basic string", "text in three quotes"),
    ("basic string", "text in quotes"),
    ("literal string", "text in quotes"),
    ("string", "text"),
    ("array", "list"),
    ("boolean", "`true` or `false`"),
];

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has an error. The message has its path and the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the configuration {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    ///
    /// The text has an error. The message has the line, the key and a way to fix it.
    pub fn parse(text: &str) -> Result<Self, String> {
        self::parse(text)
    }
}

/// Parses a configuration.
///
/// # Errors
///
/// The text has an error. The message has the line.
fn parse(text: &str) -> Result<Config, String> {
    let table = DeTable::parse(text).map_err(|error| {
        let (said, _) = error.message().split_once(", expected").unwrap_or((error.message(), ""));
        let said = PLAIN_TERMS.iter().fold(said.to_owned(), |said, (word, plain)| said.replace(word, plain));
        let why =
            format!("this is not TOML: {said}; write `key = value`, with text in quotes, and sections as `[name]`");
        at_line(text, error.span(), &why)
    })?;
    let schema = schema_for!(Config).to_value();
    SchemaCheck { text, root: &schema }.check_section("", table.get_ref(), table.span(), &schema)?;
    toml::from_str(text).map_err(|error| at_line(text, error.span(), error.message().trim_end()))
}

fn at_line(text: &str, span: Option<Range<usize>>, why: &str) -> String {
    match span {
        Some(span) => {
            let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
            format!("line {}: {why}", before.iter().filter(|byte| **byte == b'\n').count() + 1)
        }
        None => why.to_owned(),
    }
}

/// Compares the text with the schema.
struct SchemaCheck<'a> {
    text: &'a str,
    root: &'a Schema,
}

/// The required type of a value.
enum ExpectedType<'a> {
    Text,
    TextList,
    Bool,
    /// An integer that is not larger than this value.
    Number(i128),
    Section(&'a Schema),
}

impl<'a> SchemaCheck<'a> {
    fn check_section(
        &self,
        path: &str,
        table: &DeTable<'_>,
        span: Range<usize>,
        schema: &'a Schema,
    ) -> Result<(), String> {
        let known = schema["properties"].as_object().into_iter().flatten();
        for (key, value) in table {
            let name = key.get_ref();
            let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            let Some((_, property)) = known.clone().find(|(known, _)| *known == name) else {
                let names: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
                let why = format!("unknown key `{full}`; the keys here are {}", names.join(", "));
                return Err(at_line(self.text, Some(key.span()), &why));
            };
            self.check_value(&full, name, value, &self.expected_type(property))?;
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Schema::as_str) {
            if !table.keys().any(|key| key.get_ref() == name) {
                let why = format!("the section [{path}] also needs the key `{name}`");
                return Err(at_line(self.text, Some(span), &why));
            }
        }
        Ok(())
    }

    fn check_value(
        &self,
        full: &str,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &ExpectedType<'a>,
    ) -> Result<(), String> {
        let at = |why: String| at_line(self.text, Some(value.span()), &why);
        let found = describe_type(value.get_ref());
        match (wanted, value.get_ref()) {
            (ExpectedType::Text, DeValue::String(_)) | (ExpectedType::Bool, DeValue::Boolean(_)) => Ok(()),
            (ExpectedType::Section(schema), DeValue::Table(table)) => {
                self.check_section(full, table, value.span(), schema)
            }
            (ExpectedType::TextList, DeValue::Array(entries)) => {
                let other = entries.iter().find(|entry| !entry.get_ref().is_str());
                other.map_or(Ok(()), |entry| {
                    let found = describe_type(entry.get_ref());
                    let why = format!("`{full}` contains {found}: write each entry as text in quotes");
                    Err(at_line(self.text, Some(entry.span()), &why))
                })
            }
            (ExpectedType::Number(most), DeValue::Integer(number)) => {
                match i128::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) if number < 0 => Err(at(format!("`{full}` is {number}: write 0 or more"))),
                    Ok(number) if number <= *most => Ok(()),
                    _ => Err(at(format!("`{full}` is {}: write at most {most}", number.as_str()))),
                }
            }
            (ExpectedType::Text, _) => Err(at(format!("`{full}` is {found}: write text in quotes, {name} = \"...\""))),
            (ExpectedType::TextList, _) => Err(at(format!("`{full}` is {found}: write a list, {name} = [\"...\"]"))),
            (ExpectedType::Bool, _) => Err(at(format!("`{full}` is {found}: write true or false, without quotes"))),
            (ExpectedType::Number(_), _) => {
                Err(at(format!("`{full}` is {found}: write a whole number, without quotes")))
            }
            (ExpectedType::Section(_), _) => {
                Err(at(format!("`{full}` is {found}: write a section, [{full}], and its keys in the lines below")))
            }
        }
    }

    fn expected_type(&self, property: &'a Schema) -> ExpectedType<'a> {
        if let Some(section) = self.section_schema(property) {
            return ExpectedType::Section(section);
        }
        let is = |name: &str| {
            let of = &property["type"];
            of == name || of.as_array().is_some_and(|types| types.iter().any(|of| of == name))
        };
        if is("array") {
            ExpectedType::TextList
        } else if is("boolean") {
            ExpectedType::Bool
        } else if is("integer") {
            // The maximum of TOML integers is 2^63 - 1.
            ExpectedType::Number(if property["format"] == "uint32" { u32::MAX.into() } else { i64::MAX.into() })
        } else {
            ExpectedType::Text
        }
    }

    /// Returns the schema of a section; `None` if the property is not a section.
    fn section_schema(&self, property: &'a Schema) -> Option<&'a Schema> {
        let choices = property["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reference = choices.iter().chain([property]).find_map(|choice| choice["$ref"].as_str())?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn describe_type(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a point or an exponent",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms of programmers that must not occur in any message.
    const UNWANTED: [&str; 12] = [
        "expected",
        "invalid type",
        "sequence",
        "usize",
        "u32",
        "u64",
        "integer",
        "string",
        "boolean",
        "struct",
        "floating",
        "array",
    ];

    #[test]
    fn each_error_has_plain_words_the_line_and_a_fix() {
        for (text, expected) in [
            ("listen = \"tcp://127.0.0.1:1\"", "line 1: `listen` is text: write a list, listen = [\"...\"]"),
            ("\nlisten = [1]", "line 2: `listen` contains a number: write each entry as text in quotes"),
            ("http = 9080", "line 1: `http` is a number: write text in quotes, http = \"...\""),
            ("file = true", "line 1: `file` is true or false: write text in quotes"),
            ("file = 2026-11-22", "line 1: `file` is a date or a time: write text in quotes"),
            ("insecure = \"yes\"", "line 1: `insecure` is text: write true or false, without quotes"),
            ("insecure = 1", "line 1: `insecure` is a number: write true or false"),
            ("[limits]\nconnections = \"many\"", "line 2: `limits.connections` is text: write a whole number"),
            ("[limits]\nconnections = 1.5", "line 2: `limits.connections` is a number with a point"),
            ("[limits]\nconnections = [1]", "line 2: `limits.connections` is a list: write a whole number"),
            ("[limits]\nconnections = -1", "line 2: `limits.connections` is -1: write 0 or more"),
            ("[retention]\ndays = 5_000_000_000", "line 2: `retention.days` is 5000000000: write at most 4294967295"),
            ("[retention]\nbytes = 99999999999999999999", "`retention.bytes` is 99999999999999999999: write at most"),
            ("limits = 3", "line 1: `limits` is a number: write a section, [limits]"),
            ("[[retention]]\ndays = 3", "`retention` is a list: write a section, [retention]"),
            ("[listen]\nx = 1", "line 1: `listen` is a section: write a list"),
            ("\nlimit = 3", "line 2: unknown key `limit`; the keys here are access, adopt,"),
            ("[retention]\nday = 3", "line 2: unknown key `retention.day`; the keys here are bytes, days"),
            ("\n[tls]\nkey = \"k\"", "line 2: the section [tls] also needs the key `certificate`"),
            ("store = [\"mysql:x\"]", "line 1: \"mysql:x\" is not a store: write sqlite:FOLDER"),
            ("listen = [\n\"tcp://127.0.0.1:1\",\n\"x\"]", "line 1: \"x\" is not an address"),
            ("http = off", "line 1: this is not TOML: text values must be quoted"),
            ("http = \"a", "line 1: this is not TOML: invalid text in quotes"),
            ("listen", "line 1: this is not TOML: key with no value"),
            ("x = [1", "line 1: this is not TOML: unclosed list"),
            ("insecure = true\ninsecure = true", "line 2: this is not TOML: duplicate key"),
        ] {
            let said = parse(text).unwrap_err();

            assert!(said.contains(expected), "{text}\n  {said}\n  {expected}");
            assert!(!UNWANTED.iter().any(|word| said.contains(word)), "{text}\n  {said}");
        }
    }
}
