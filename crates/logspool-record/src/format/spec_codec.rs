//! A [`FormatSpec`] as one tuple of values. The segment's format table holds specs in this form.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). A recoverer reads these bytes of a dead process, so every length is
//! bounded. A tuple that differs from the form that [`FormatSpec::encode`] writes is refused as a whole.

use super::codec_items::{number, optional, optional_text, pairs, style_from, style_number, text, tuple};
use super::object_spec::ObjectSpec;
use super::spec::{ControlRule, Extras, FormatSpec, Layout};
use super::styled_spec::StyledSpec;
use crate::cpython::{CpythonRules, TimeArithmetic};
use crate::definition::Zone;
use crate::record::{Encoder, Values};

/// First item of the tuple. Another number means that the other items have another layout.
const VERSION: i64 = 1;

/// The item for [`ControlRule::Escape`].
const ESCAPES: i64 = 1;

/// The kind of [`Layout::Object`].
const OBJECT: i64 = 6;

/// The kind of [`Layout::Styled`].
const STYLED: i64 = 7;

/// The kind of [`Layout::Pattern`].
const PATTERN: i64 = 8;

impl FormatSpec {
    /// Appends the spec as one tuple, in the form of the format table.
    pub fn encode(&self, encoder: &mut Encoder) {
        // Earlier versions read the form without the last item.
        let escapes = self.control == ControlRule::Escape;
        encoder.tuple(12 + u32::from(escapes)).int(VERSION);
        self.encode_layout(encoder);
        optional(encoder, self.date_format.as_deref());
        encoder.str(&self.default_time_format);
        optional(encoder, self.default_msec_format.as_deref());
        encoder.int(match self.zone {
            Zone::Local => 0,
            Zone::Utc => 1,
        });
        encoder.tuple(2 * self.level_names.len() as u32);
        for (level, name) in &self.level_names {
            encoder.int(i64::from(*level)).str(name);
        }
        encoder.int(self.start_time_ns);
        encoder.int(match self.cpython.arithmetic() {
            TimeArithmetic::FloatFraction => 0,
            TimeArithmetic::FloatWhole => 1,
            TimeArithmetic::Nanoseconds => 2,
        });
        encoder.int(i64::from(self.cpython.minor())).int(i64::from(self.process_id)).str(&self.terminator);
        if escapes {
            encoder.int(ESCAPES);
        }
    }

    fn encode_layout(&self, encoder: &mut Encoder) {
        match &self.layout {
            Layout::Text { style, template } => {
                encoder.tuple(2).int(style_number(*style)).str(template);
            }
            Layout::Json { fields, extras } => {
                let extras = match extras {
                    Extras::Omit => 3,
                    Extras::Append => 4,
                };
                encoder.tuple(1 + 2 * fields.len() as u32).int(extras);
                for (key, attribute) in fields {
                    encoder.str(key).str(attribute);
                }
            }
            Layout::Object(object) => object.encode(OBJECT, encoder),
            Layout::Styled(styled) => styled.encode(STYLED, encoder),
            Layout::Entry => {
                encoder.tuple(1).int(5);
            }
            Layout::Pattern(pattern) => {
                encoder.tuple(2).int(PATTERN).str(pattern);
            }
        }
    }

    /// Decodes the items of a tuple that [`FormatSpec::encode`] wrote.
    pub fn decode(mut items: Values<'_>) -> Option<Self> {
        if number::<i64>(&mut items)? != VERSION {
            return None;
        }
        let spec = Self {
            layout: decode_layout(tuple(&mut items)?)?,
            date_format: optional_text(&mut items)?,
            default_time_format: text(&mut items)?,
            default_msec_format: optional_text(&mut items)?,
            zone: match number::<u8>(&mut items)? {
                0 => Zone::Local,
                1 => Zone::Utc,
                _ => return None,
            },
            level_names: pairs(tuple(&mut items)?, number, text)?,
            start_time_ns: number(&mut items)?,
            cpython: cpython(&mut items)?,
            process_id: number(&mut items)?,
            terminator: text(&mut items)?,
            control: match items.rest().is_empty() {
                true => ControlRule::Keep,
                false if number::<i64>(&mut items)? == ESCAPES => ControlRule::Escape,
                false => return None,
            },
        };
        items.rest().is_empty().then_some(spec)
    }
}

fn cpython(items: &mut Values<'_>) -> Option<CpythonRules> {
    let arithmetic = match number::<u8>(items)? {
        0 => TimeArithmetic::FloatFraction,
        1 => TimeArithmetic::FloatWhole,
        2 => TimeArithmetic::Nanoseconds,
        _ => return None,
    };
    Some(CpythonRules::of_records(number(items)?, arithmetic))
}

fn decode_layout(mut items: Values<'_>) -> Option<Layout> {
    let kind = number::<u8>(&mut items)?;
    let style = match kind {
        0..=2 => style_from(kind)?,
        3 => return Some(Layout::Json { fields: pairs(items, text, text)?, extras: Extras::Omit }),
        4 => return Some(Layout::Json { fields: pairs(items, text, text)?, extras: Extras::Append }),
        7 => return StyledSpec::decode(items).map(Layout::Styled),
        6 => return ObjectSpec::decode(items).map(Layout::Object),
        8 => {
            let pattern = text(&mut items)?;
            return items.rest().is_empty().then_some(Layout::Pattern(pattern));
        }
        5 => return items.rest().is_empty().then_some(Layout::Entry),
        _ => return None,
    };
    let template = text(&mut items)?;
    items.rest().is_empty().then_some(Layout::Text { style, template })
}

#[cfg(test)]
mod tests {
    use super::super::codec_items::MAX_TEXT_BYTES;
    use super::super::object_spec::{AssignedValue, TextShape};
    use super::super::style::Style;
    use super::super::styled_spec::{DerivedAttribute, FieldRule, NumberRange, NumberTexts, Part};
    use super::*;
    use crate::record::Value;

    fn decoded(bytes: &[u8]) -> Option<FormatSpec> {
        match Values::new(bytes).next()? {
            Value::Tuple(items) => FormatSpec::decode(items),
            _ => None,
        }
    }

    fn object() -> ObjectSpec {
        let assigned = [
            AssignedValue::Attribute("message".to_owned()),
            AssignedValue::Constant("[1]".to_owned()),
            AssignedValue::Exception(TextShape::Whole),
            AssignedValue::Exception(TextShape::Lines),
            AssignedValue::Stack(TextShape::Whole),
            AssignedValue::Stack(TextShape::Lines),
            AssignedValue::Timestamp,
            AssignedValue::NullIfAbsent,
            AssignedValue::Extras,
            AssignedValue::Open,
            AssignedValue::Level(NumberTexts { listed: vec![(20, "info".to_owned())], ranges: Vec::new() }),
            AssignedValue::Close,
            AssignedValue::NestedExtras,
            AssignedValue::MessageItems,
        ];
        ObjectSpec {
            prefix: "@cee: ".to_owned(),
            ascii: true,
            compact: true,
            own_exceptions: true,
            assignments: assigned.into_iter().map(|assigned| ("key".to_owned(), assigned)).collect(),
            hidden: vec!["request".to_owned(), "_x".to_owned()],
            hides_private: true,
            renamed: vec![("a".to_owned(), "b".to_owned())],
        }
    }

    fn styled() -> StyledSpec {
        let range = |after: Option<&str>| NumberRange {
            low: i64::MIN,
            high: 9,
            before: "Level ".to_owned(),
            after: after.map(str::to_owned),
        };
        let texts =
            || NumberTexts { listed: vec![(20, "INFO:".to_owned())], ranges: vec![range(None), range(Some(":"))] };
        let field = || "status_code".to_owned();
        let derived = [
            DerivedAttribute::OfLevel(texts()),
            DerivedAttribute::OfField(field(), texts()),
            DerivedAttribute::Joined(vec![Part::Literal("[".to_owned()), Part::Field(field())]),
            DerivedAttribute::FieldOrTime(field()),
            DerivedAttribute::MessageBy(field(), texts()),
            DerivedAttribute::EscapedMessage,
        ];
        StyledSpec {
            style: Style::Brace,
            template: "{name} {message}".to_owned(),
            derived: derived.into_iter().map(|derived| ("name".to_owned(), derived)).collect(),
            end: "\x1b[0m".to_owned(),
            arguments: vec!["a".to_owned(), "b".to_owned()],
            limits: vec![("a".to_owned(), FieldRule::Number), ("b".to_owned(), FieldRule::Absent)],
            own_exceptions: true,
            marks_records: true,
        }
    }

    fn specs() -> [FormatSpec; 6] {
        let mut text = FormatSpec::text(Style::Brace, "{asctime} {message:>5} \u{2603}");
        text.date_format = Some("%H".to_owned());
        text.default_msec_format = None;
        text.zone = Zone::Utc;
        text.cpython = CpythonRules::of_records(12, TimeArithmetic::FloatWhole);
        text.start_time_ns = -5;
        text.process_id = u32::MAX;
        let json = FormatSpec::json(&[("t", "time"), ("m", "message")], Extras::Append);
        let mut pattern = FormatSpec::pattern("{time:%S.%9f} {level} {message}");
        pattern.control = ControlRule::Escape;
        [text, json, FormatSpec::entry(7), FormatSpec::object(object()), FormatSpec::styled(styled()), pattern]
    }

    #[test]
    fn the_release_is_two_numbers_before_the_process_as_earlier_versions_wrote_it() {
        let [spec, ..] = specs();
        let (mut encoder, mut end) = (Encoder::new(), Encoder::new());
        spec.encode(&mut encoder);
        end.int(-5).int(1).int(12).int(i64::from(u32::MAX)).str("\n");

        assert!(encoder.bytes.ends_with(&end.bytes));
    }

    #[test]
    fn a_spec_is_read_back_unchanged() {
        for spec in specs() {
            let mut encoder = Encoder::new();
            spec.encode(&mut encoder);

            assert_eq!(Some(spec), decoded(&encoder.bytes));
        }
    }

    #[test]
    fn cut_or_changed_bytes_are_refused_or_decoded_but_never_panic() {
        for spec in specs() {
            let mut encoder = Encoder::new();
            spec.encode(&mut encoder);
            // Miri takes minutes for all positions.
            for position in (0..encoder.bytes.len()).step_by(if cfg!(miri) { 31 } else { 1 }) {
                assert_eq!(None, decoded(&encoder.bytes[..position]));
                for change in [1, 0x40, 0xff] {
                    let mut bytes = encoder.bytes.clone();
                    bytes[position] ^= change;
                    if let Some(spec) = decoded(&bytes) {
                        let _ = super::super::Format::compile(&spec);
                    }
                }
            }
        }
    }

    #[test]
    fn texts_beyond_the_bound_are_refused() {
        let spec = FormatSpec::text(Style::Percent, &"x".repeat(MAX_TEXT_BYTES + 1));
        let mut encoder = Encoder::new();
        spec.encode(&mut encoder);

        assert_eq!(None, decoded(&encoder.bytes));
    }
}
