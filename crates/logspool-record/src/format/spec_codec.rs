//! A [`FormatSpec`] as one tuple of values. The segment's format table holds specs in this form.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). A recoverer reads these bytes of a dead process, so every length is
//! bounded. A tuple that differs from the form that [`FormatSpec::encode`] writes is refused as a whole.

use super::spec::{Extras, FormatSpec, Layout, Style};
use crate::cpython::{CpythonRules, TimeArithmetic};
use crate::definition::Zone;
use crate::record::{Encoder, Value, Values};

/// Maximum length of a text of a spec in bytes. Chosen: format strings are below 1 KiB. A limit of twice this size
/// would do no harm.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum number of level names, and of fields of a JSON layout. Chosen: programs have fewer than 100. The bound
/// limits a hostile table.
const MAX_ITEMS: usize = 4096;

/// First item of the tuple. Another number means that the other items have another layout.
const VERSION: i64 = 1;

impl FormatSpec {
    /// Appends the spec as one tuple, in the form of the format table.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(12).int(VERSION);
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
    }

    fn encode_layout(&self, encoder: &mut Encoder) {
        match &self.layout {
            Layout::Text { style, template } => {
                let style = match style {
                    Style::Percent => 0,
                    Style::Brace => 1,
                    Style::Dollar => 2,
                };
                encoder.tuple(2).int(style).str(template);
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
            Layout::Entry => {
                encoder.tuple(1).int(5);
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
        0 => Style::Percent,
        1 => Style::Brace,
        2 => Style::Dollar,
        3 => return Some(Layout::Json { fields: pairs(items, text, text)?, extras: Extras::Omit }),
        4 => return Some(Layout::Json { fields: pairs(items, text, text)?, extras: Extras::Append }),
        5 => return items.rest().is_empty().then_some(Layout::Entry),
        _ => return None,
    };
    let template = text(&mut items)?;
    items.rest().is_empty().then_some(Layout::Text { style, template })
}

type Read<T> = fn(&mut Values<'_>) -> Option<T>;

fn pairs<A, B>(mut items: Values<'_>, first: Read<A>, second: Read<B>) -> Option<Vec<(A, B)>> {
    let mut read = Vec::new();
    while !items.rest().is_empty() {
        if read.len() == MAX_ITEMS {
            return None;
        }
        read.push((first(&mut items)?, second(&mut items)?));
    }
    Some(read)
}

fn optional(encoder: &mut Encoder, text: Option<&str>) {
    match text {
        Some(text) => encoder.str(text),
        None => encoder.none(),
    };
}

fn optional_text(items: &mut Values<'_>) -> Option<Option<String>> {
    match items.next()? {
        Value::None => Some(None),
        Value::Str(text) if text.len() <= MAX_TEXT_BYTES => Some(Some(text.to_owned())),
        _ => None,
    }
}

fn text(items: &mut Values<'_>) -> Option<String> {
    optional_text(items)?
}

fn number<T: TryFrom<i64>>(items: &mut Values<'_>) -> Option<T> {
    match items.next()? {
        Value::Int(number) => T::try_from(number).ok(),
        _ => None,
    }
}

fn tuple<'a>(items: &mut Values<'a>) -> Option<Values<'a>> {
    match items.next()? {
        Value::Tuple(inner) => Some(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<FormatSpec> {
        match Values::new(bytes).next()? {
            Value::Tuple(items) => FormatSpec::decode(items),
            _ => None,
        }
    }

    fn specs() -> [FormatSpec; 3] {
        let mut text = FormatSpec::text(Style::Brace, "{asctime} {message:>5} \u{2603}");
        text.date_format = Some("%H".to_owned());
        text.default_msec_format = None;
        text.zone = Zone::Utc;
        text.cpython = CpythonRules::of_records(12, TimeArithmetic::FloatWhole);
        text.start_time_ns = -5;
        text.process_id = u32::MAX;
        let json = FormatSpec::json(&[("t", "time"), ("m", "message")], Extras::Append);
        [text, json, FormatSpec::entry(7)]
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
    fn a_spec_comes_back_as_written() {
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
