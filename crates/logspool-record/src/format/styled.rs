//! The values of the attributes that a formatter adds to a record; see [`DerivedAttribute`].
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

use super::attribute::Attribute;
use super::attribute_values::AttributeValues;
use super::control::{self, LineEndRule};
use super::directive::{ArgumentKind, RenderedBy};
use super::integer::push_signed;
use super::render_state::{RenderError, RenderState};
use super::repr::push_str;
use super::styled_spec::{DerivedAttribute, FieldRule, NumberTexts, Part};
use super::view::ParsedRecord;
use crate::record::Value;

impl NumberTexts {
    /// Appends the text of a number.
    pub(super) fn push(&self, number: i64, out: &mut Vec<u8>) {
        if let Some((_, text)) = self.listed.iter().find(|(listed, _)| *listed == number) {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        let Some(range) = self.ranges.iter().find(|range| (range.low..=range.high).contains(&number)) else { return };
        out.extend_from_slice(range.before.as_bytes());
        if let Some(after) = &range.after {
            push_signed(out, number);
            out.extend_from_slice(after.as_bytes());
        }
    }
}

impl DerivedAttribute {
    /// The names of the extra fields from which the value is made.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        let (own, parts): (Option<&str>, &[Part]) = match self {
            Self::OfLevel(_) | Self::EscapedMessage => (None, &[]),
            Self::OfField(field, _) | Self::FieldOrTime(field) | Self::MessageBy(field, _) => (Some(field), &[]),
            Self::Joined(parts) => (None, parts),
        };
        own.into_iter().chain(parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Field(name) => Some(name.as_str()),
        }))
    }

    /// Whether Python raises an error for a record without these fields.
    pub(super) fn requires_fields(&self) -> bool {
        matches!(self, Self::OfField(..) | Self::Joined(_))
    }

    /// Returns which side renders a field of type `kind` from which the value is made.
    pub(super) fn accepts(&self, kind: ArgumentKind) -> RenderedBy {
        let fits = match self {
            Self::OfLevel(_) | Self::EscapedMessage => true,
            Self::OfField(..) => kind == ArgumentKind::Int,
            Self::Joined(_) | Self::FieldOrTime(_) => kind != ArgumentKind::Other,
            Self::MessageBy(..) => matches!(kind, ArgumentKind::Int | ArgumentKind::None),
        };
        if fits { RenderedBy::Deferred } else { RenderedBy::Mismatch }
    }

    pub(super) fn push(
        &self,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        match self {
            Self::OfLevel(texts) => texts.push(i64::from(record.level), out),
            Self::OfField(field, texts) => match record.field(field) {
                Some(Value::Int(number)) => texts.push(number, out),
                Some(_) => return Err(RenderError::WrongType),
                None => return Err(RenderError::MissingField),
            },
            Self::Joined(parts) => {
                for part in parts {
                    match part {
                        Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                        Part::Field(name) => push_str(out, record.field(name).ok_or(RenderError::MissingField)?),
                    }
                }
            }
            Self::EscapedMessage => {
                let start = out.len();
                let pushed = values.push_plain(&Attribute::Message, record, state, out);
                control::escape_from(start, LineEndRule::Escape, out);
                return pushed;
            }
            Self::FieldOrTime(field) => match record.field(field) {
                Some(value) => push_str(out, value),
                None => return values.push_plain(&Attribute::AscTime, record, state, out),
            },
            Self::MessageBy(field, texts) => {
                let number = match record.field(field) {
                    Some(Value::Int(number)) if number != 0 => number,
                    Some(Value::Int(_) | Value::None) | None => {
                        return values.push_plain(&Attribute::Message, record, state, out);
                    }
                    Some(_) => return Err(RenderError::WrongType),
                };
                let range = texts.ranges.iter().find(|range| (range.low..=range.high).contains(&number));
                let (before, after) =
                    range.map_or(("", ""), |range| (range.before.as_str(), range.after.as_deref().unwrap_or_default()));
                out.extend_from_slice(before.as_bytes());
                let pushed = values.push_plain(&Attribute::Message, record, state, out);
                out.extend_from_slice(after.as_bytes());
                return pushed;
            }
        }
        Ok(())
    }
}

impl FieldRule {
    /// Returns which side renders a record with a value of type `kind` in the field.
    pub(super) fn accepts(self, kind: ArgumentKind) -> RenderedBy {
        use ArgumentKind::{BigInt, Bool, Float, Int, None};
        let fits = self == Self::Number && matches!(kind, None | Bool | Int | BigInt | Float);
        if fits { RenderedBy::Deferred } else { RenderedBy::Mismatch }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::Format;
    use super::super::styled_spec::{NumberRange, StyledSpec};
    use super::super::{FormatSpec, RecordView};
    use super::*;
    use crate::record::{Encoder, Values, tag};

    fn line(spec: StyledSpec, encoder: &Encoder) -> String {
        let format = Format::compile(&FormatSpec::styled(spec)).expect("supported");
        let values = Values::new(&encoder.bytes);
        let record = RecordView { time_ns: 0, level: 30, logger: "app", site: None, values };
        let mut out = Vec::new();
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");
        String::from_utf8(out).expect("UTF-8")
    }

    fn range(low: i64, high: i64, before: &str, after: Option<&str>) -> NumberRange {
        NumberRange { low, high, before: before.to_owned(), after: after.map(str::to_owned) }
    }

    fn message(text: &str) -> Encoder {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, text);
        encoder
    }

    fn spec(template: &str, name: &str, derived: DerivedAttribute) -> StyledSpec {
        let derived = vec![(name.to_owned(), derived)];
        StyledSpec { template: template.to_owned(), derived, ..StyledSpec::default() }
    }

    #[test]
    fn a_level_has_the_text_that_is_listed_or_that_of_its_range() {
        let texts = |number: i64| NumberTexts {
            listed: vec![(number, "[W]".to_owned())],
            ranges: vec![range(0, 9, "", None), range(0, 100, "Level ", Some(":"))],
        };
        let shown = |number| {
            let spec = spec("%(prefix)-10s|%(message)s", "prefix", DerivedAttribute::OfLevel(texts(number)));
            line(spec, &message("m"))
        };

        assert_eq!("[W]       |m\n", shown(30));
        assert_eq!("Level 30: |m\n", shown(29));
    }

    #[test]
    fn fields_are_joined_and_numbers_have_texts() {
        let mut encoder = message("m");
        encoder.field("method").str("GET").field("path").str("/é").field("status").int(404);
        let parts = vec![
            Part::Literal("<".to_owned()),
            Part::Field("method".to_owned()),
            Part::Literal(" ".to_owned()),
            Part::Field("path".to_owned()),
        ];
        let mut spec = spec("{request} {code}", "request", DerivedAttribute::Joined(parts));
        spec.style = super::super::Style::Brace;
        let texts = NumberTexts { listed: vec![(404, "404 Not Found".to_owned())], ranges: Vec::new() };
        spec.derived.push(("code".to_owned(), DerivedAttribute::OfField("status".to_owned(), texts)));

        assert_eq!("<GET /é 404 Not Found\n", line(spec, &encoder));
    }

    #[test]
    fn the_suffix_follows_once_before_the_exception() {
        for (text, shown) in [("m", "m<>\nE: x\n"), ("m<>", "m<>\nE: x\n"), ("", "<>\nE: x\n")] {
            let mut encoder = message(text);
            encoder.context_str(tag::EXCEPTION, "E: x");
            let spec = StyledSpec { template: "%(message)s".to_owned(), end: "<>".to_owned(), ..StyledSpec::default() };

            assert_eq!(shown, line(spec, &encoder));
        }
    }

    #[test]
    fn the_message_is_put_between_the_texts_of_its_status() {
        let texts = NumberTexts {
            listed: Vec::new(),
            ranges: vec![range(200, 299, "<", Some(">")), range(i64::MIN, i64::MAX, "!", Some("!"))],
        };
        let by = DerivedAttribute::MessageBy("status".to_owned(), texts);
        let shown = |status: Option<i64>| {
            let mut encoder = message("m");
            if let Some(status) = status {
                encoder.field("status").int(status);
            }
            line(spec("%(message)s", "message", by.clone()), &encoder)
        };

        assert_eq!(["m\n", "m\n", "<m>\n", "!m!\n"], [None, Some(0), Some(201), Some(-1)].map(shown));
    }

    #[test]
    fn a_field_comes_before_the_time() {
        let or_time = DerivedAttribute::FieldOrTime("when".to_owned());
        let mut spec = FormatSpec::styled(spec("%(when)s", "when", or_time));
        spec.date_format = Some("%Y".to_owned());
        let format = Format::compile(&spec).expect("supported");
        for (with, shown) in [(true, "now\n"), (false, "1970\n")] {
            let mut encoder = message("m");
            if with {
                encoder.field("when").str("now");
            }
            let values = Values::new(&encoder.bytes);
            let record = RecordView { time_ns: 86_400_000_000_000, level: 30, logger: "app", site: None, values };
            let mut out = Vec::new();
            format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");

            assert_eq!(shown, String::from_utf8(out).expect("UTF-8"));
        }
        assert!(!format.requires_field("when"));
    }

    #[test]
    fn a_format_accepts_the_fields_that_it_can_show() {
        use RenderedBy::{Deferred, Mismatch};
        let mut spec =
            spec("%(code)s %(user)s", "code", DerivedAttribute::OfField("status".to_owned(), NumberTexts::default()));
        spec.limits = vec![("size".to_owned(), FieldRule::Number), ("color_message".to_owned(), FieldRule::Absent)];
        let format = Format::compile(&FormatSpec::styled(spec)).expect("supported");

        for (name, kind, accepted) in [
            ("status", ArgumentKind::Int, Deferred),
            ("status", ArgumentKind::AsciiStr, Mismatch),
            ("color_message", ArgumentKind::AsciiStr, Mismatch),
            ("size", ArgumentKind::Float, Deferred),
            ("size", ArgumentKind::Str, Mismatch),
            ("user", ArgumentKind::Str, Deferred),
        ] {
            assert_eq!(accepted, format.accepts_field(name, kind), "{name} {kind:?}");
        }
        assert_eq!(
            [true, true, false, false],
            ["status", "user", "size", "color_message"].map(|name| format.requires_field(name))
        );
    }
}
