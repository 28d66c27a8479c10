//! Compiles a [`FormatSpec`] to a [`Format`], which renders records.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). Capture compiles a spec to find out whether a Formatter
//! can be taken over. A Formatter is refused if Python would raise for every record, or if its text cannot be
//! reproduced exactly.

use super::attribute::Attribute;
use super::attribute_values::{AttributeValues, LevelNames};
use super::directive::{ArgumentKind, RenderedBy};
use super::entry::EntryLayout;
use super::json::JsonLayout;
use super::line_pattern::LinePattern;
use super::moment::RecordTimes;
use super::needs::{Need, Needs};
use super::object::ObjectLayout;
use super::pattern::{Piece, compile_text};
use super::spec::{ControlRule, FormatSpec, Layout};
use super::style::Style;
use super::styled_spec::{DerivedAttribute, FieldRule};
use super::time::AscTime;
use super::unsupported::Unsupported;

#[derive(Debug, Clone)]
pub(super) enum Body {
    /// The pieces, and the text at the end of the first line.
    Text(Box<[Piece]>, Box<[u8]>),
    Json(JsonLayout),
    Object(ObjectLayout),
    Entry(EntryLayout),
    Line(LinePattern),
}

/// A compiled [`FormatSpec`].
///
/// ```
/// use logspool_record::format::{Format, FormatSpec, RecordView, RenderState, Style};
/// use logspool_record::{Encoder, Values, tag};
///
/// let format = Format::compile(&FormatSpec::text(Style::Percent, "%(levelname)s %(message)s")).expect("supported");
/// let mut encoder = Encoder::new();
/// encoder.context_str(tag::MESSAGE, "ready");
/// let values = Values::new(&encoder.bytes);
/// let record = RecordView { time_ns: 0, level: 20, logger: "app", site: None, values };
/// let mut out = Vec::new();
/// format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");
/// assert_eq!(b"INFO ready\n", out.as_slice());
/// ```
#[derive(Debug, Clone)]
pub struct Format {
    pub(super) body: Body,
    pub(super) values: AttributeValues,
    pub(super) terminator: Box<[u8]>,
    pub(super) control: ControlRule,
    /// Fields that the format treats in a way of its own.
    limits: Box<[(String, FieldRule)]>,
    needs: Needs,
}

impl Format {
    /// Compiles a spec.
    ///
    /// # Errors
    ///
    /// [`Unsupported`]: the reason why the Formatter must stay on the stock path.
    pub fn compile(spec: &FormatSpec) -> Result<Self, Unsupported> {
        let body = match &spec.layout {
            Layout::Text { style, template } => Body::Text(compile_text(*style, template, spec)?, Box::default()),
            Layout::Json { fields, extras } => Body::Json(JsonLayout::compile(fields, *extras, spec.cpython)?),
            Layout::Styled(styled) => {
                Body::Text(compile_text(styled.style, &styled.template, spec)?, styled.end.as_bytes().into())
            }
            Layout::Object(object) => Body::Object(ObjectLayout::compile(object, spec.cpython)?),
            Layout::Entry => Body::Entry(EntryLayout::compile(spec)),
            Layout::Pattern(pattern) => Body::Line(LinePattern::compile(pattern, spec)?),
        };
        let mut needs = Needs::default();
        let mut shows_asctime = formats_time(&spec.layout);
        let mut note = |attribute: &Attribute| {
            shows_asctime |= *attribute == Attribute::AscTime;
            match attribute {
                Attribute::Field(name) => needs.insert_field(name),
                Attribute::Derived(derived) => {
                    shows_asctime |= matches!(**derived, DerivedAttribute::FieldOrTime(_));
                    derived.fields().for_each(|name| needs.insert_field(name));
                }
                attribute => attribute.need().into_iter().for_each(|need| needs.insert(need)),
            }
        };
        match &body {
            Body::Text(pieces, _) => pieces.iter().for_each(|piece| match piece {
                Piece::Show(attribute, _) => note(attribute),
                Piece::Literal(_) => {}
            }),
            Body::Json(layout) => {
                layout.attributes().for_each(note);
                layout.add_needs(&mut needs);
            }
            Body::Object(layout) => {
                layout.attributes().for_each(note);
                layout.add_needs(&mut needs);
            }
            Body::Entry(layout) => layout.add_needs(&mut needs),
            Body::Line(pattern) => pattern.add_needs(&mut needs),
        }
        if let Layout::Styled(styled) = &spec.layout {
            styled.limits.iter().for_each(|(name, _)| needs.insert_field(name));
            if styled.own_exceptions {
                needs.insert(Need::OwnExceptions);
            }
            if styled.marks_records {
                needs.insert(Need::LastStop);
                needs.insert(Need::Marks);
            }
        }
        Ok(Self {
            body,
            limits: if let Layout::Styled(styled) = &spec.layout {
                styled.limits.as_slice().into()
            } else {
                Box::default()
            },
            values: AttributeValues {
                asctime: shows_asctime.then(|| AscTime::compile(spec)).transpose()?,
                clock: RecordTimes::new(spec),
                levels: LevelNames::new(&spec.level_names),
                process_id: Some(spec.process_id).filter(|id| *id != 0),
            },
            terminator: spec.terminator.as_bytes().into(),
            control: spec.control,
            needs,
        })
    }

    /// The parts of a record that capture must send for this format.
    pub const fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Whether Python raises an error for a record without the extra field `name`.
    pub fn requires_field(&self, name: &str) -> bool {
        let Body::Text(pieces, _) = &self.body else { return false };
        pieces.iter().any(|piece| match piece {
            Piece::Show(Attribute::Field(field), _) => **field == *name,
            Piece::Show(Attribute::Derived(derived), _) => {
                derived.requires_fields() && derived.fields().any(|field| field == name)
            }
            _ => false,
        })
    }

    /// Returns which side renders the extra field `name` for a value of type `kind`.
    ///
    /// [`RenderedBy::Deferred`]: send the value. [`RenderedBy::RenderInCaller`]: send `str(value)` as text, or for
    /// [`Layout::Object`] the JSON text as `RENDERED`. [`RenderedBy::Mismatch`]: the record takes the stock path.
    /// [`ArgumentKind::Other`] is never `Deferred`.
    pub fn accepts_field(&self, name: &str, kind: ArgumentKind) -> RenderedBy {
        let plain = if kind == ArgumentKind::Other { RenderedBy::RenderInCaller } else { RenderedBy::Deferred };
        let pieces = match &self.body {
            Body::Text(pieces, _) => pieces,
            // How `json.dumps` writes bytes depends on its encoder.
            Body::Object(_) if kind == ArgumentKind::Bytes => return RenderedBy::RenderInCaller,
            Body::Json(_) | Body::Object(_) | Body::Entry(_) | Body::Line(_) => return plain,
        };
        let mut strictest = plain;
        if let Some((_, limit)) = self.limits.iter().find(|(limited, _)| limited == name)
            && limit.accepts(kind) == RenderedBy::Mismatch
        {
            return RenderedBy::Mismatch;
        }
        for piece in pieces {
            let accepted = match piece {
                Piece::Show(Attribute::Field(field), show) if **field == *name => show.accepts(kind),
                Piece::Show(Attribute::Derived(derived), _) if derived.fields().any(|field| field == name) => {
                    derived.accepts(kind)
                }
                _ => continue,
            };
            match accepted {
                RenderedBy::Deferred => {}
                RenderedBy::RenderInCaller => strictest = RenderedBy::RenderInCaller,
                RenderedBy::Mismatch => return RenderedBy::Mismatch,
            }
        }
        strictest
    }
}

/// Like `Formatter.usesTime`, searches the text of the template. So an escaped placeholder counts, too: Python then
/// formats the time, and may raise.
fn formats_time(layout: &Layout) -> bool {
    let (style, template) = match layout {
        Layout::Text { style, template } => (style, template),
        Layout::Styled(styled) => (&styled.style, &styled.template),
        Layout::Json { .. } | Layout::Object(_) | Layout::Entry | Layout::Pattern(_) => return false,
    };
    match style {
        Style::Percent => template.contains("%(asctime)"),
        Style::Brace => template.contains("{asctime"),
        Style::Dollar => template.contains("$asctime") || template.contains("${asctime}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpython::{CpythonRules, TimeArithmetic};

    fn compiled(style: Style, template: &str) -> Result<Format, Unsupported> {
        Format::compile(&FormatSpec::text(style, template))
    }

    #[test]
    fn needs_list_everything_that_the_format_shows() {
        let format = compiled(Style::Brace, "{asctime} {lineno} {threadName} {user:>5} {user!a}").expect("supported");

        assert_eq!(["user"], format.needs().fields());
        for (need, expected) in [
            (Need::Site, true),
            (Need::Time, true),
            (Need::ThreadName, true),
            (Need::ThreadId, false),
            (Need::TaskName, false),
            (Need::AllFields, false),
        ] {
            assert_eq!(expected, format.needs().contains(need), "{need:?}");
        }
    }

    #[test]
    fn task_name_is_an_extra_field_before_python_3_12() {
        let mut spec = FormatSpec::text(Style::Percent, "%(taskName)s");
        for (minor, expected) in [(11, true), (12, false)] {
            spec.cpython = CpythonRules::of_records(minor, TimeArithmetic::FloatWhole);
            let format = Format::compile(&spec).expect("supported");

            assert_eq!(expected, format.needs().fields() == ["taskName"], "3.{minor}");
        }
    }

    #[test]
    fn extra_fields_are_accepted_as_every_place_shows_them() {
        use RenderedBy::{Deferred, Mismatch, RenderInCaller};
        for (style, template, kind, expected) in [
            (Style::Percent, "%(x)s", ArgumentKind::Other, RenderInCaller),
            (Style::Percent, "%(x)s %(x)d", ArgumentKind::Other, Mismatch),
            (Style::Percent, "%(x)d", ArgumentKind::Int, Deferred),
            (Style::Percent, "%(x)d", ArgumentKind::AsciiStr, Mismatch),
            (Style::Percent, "%(x)r", ArgumentKind::Str, Mismatch),
            (Style::Percent, "%(x)r", ArgumentKind::AsciiStr, Deferred),
            (Style::Brace, "{x}", ArgumentKind::Other, Mismatch),
            (Style::Brace, "{x!s:>5}", ArgumentKind::Other, RenderInCaller),
            (Style::Brace, "{x:>5}", ArgumentKind::None, Mismatch),
            (Style::Dollar, "$x", ArgumentKind::Other, RenderInCaller),
            (Style::Dollar, "$y", ArgumentKind::Other, RenderInCaller),
        ] {
            assert_eq!(expected, compiled(style, template).expect("supported").accepts_field("x", kind), "{template}");
        }
    }
}
