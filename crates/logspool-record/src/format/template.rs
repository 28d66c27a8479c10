//! The message template of a call site, parsed once in the grammar of the site.
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

use super::braced::{BracedGrammar, BracedTemplate};
use super::malformed::Malformed;
use super::percent::{MessageTemplate, push_unused_arguments};
use crate::definition::Grammar;
use crate::record::Values;

/// A message template in one of the grammars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteTemplate {
    /// Python's `msg % args`.
    Percent(MessageTemplate),
    /// A template with placeholders in braces.
    Braced(BracedTemplate),
    /// A text in which nothing is replaced.
    Plain(Box<str>),
}

impl SiteTemplate {
    /// Parses `source` in `grammar`. A template that its grammar rejects is shown as it is, with a marker.
    pub fn parse(grammar: Grammar, source: &str) -> Self {
        match grammar {
            Grammar::Percent => Self::Percent(MessageTemplate::parse(source)),
            Grammar::Fmt => Self::Braced(BracedTemplate::parse(BracedGrammar::Fmt, source)),
            Grammar::Rust => Self::Braced(BracedTemplate::parse(BracedGrammar::Rust, source)),
            Grammar::Plain => Self::Plain(source.into()),
        }
    }

    /// Appends the text for the arguments `values`. `fields` are the values of the record from the first extra field
    /// on.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if values are missing or left over, or cannot be shown as the template demands. The text is still
    /// written, with the marker `<?>` at each such place.
    pub(super) fn render(
        &self,
        mut values: Values<'_>,
        fields: Values<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        match self {
            Self::Percent(template) => template.render(&mut values, out),
            Self::Braced(template) => template.render(values, fields, out),
            Self::Plain(text) => {
                out.extend_from_slice(text.as_bytes());
                if values.rest().is_empty() {
                    return Ok(());
                }
                push_unused_arguments(values.next(), &mut values, out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Encoder;

    #[test]
    fn a_plain_text_is_rendered_unchanged() {
        let template = SiteTemplate::parse(Grammar::Plain, "100%% {{}} {x} %s");
        let mut out = Vec::new();

        assert_eq!(Ok(()), template.render(Values::new(&[]), Values::new(&[]), &mut out));
        assert_eq!(b"100%% {{}} {x} %s", out.as_slice());
    }

    #[test]
    fn values_of_a_plain_text_are_shown_after_a_marker() {
        let mut encoder = Encoder::new();
        encoder.int(1);
        let mut out = Vec::new();

        assert_eq!(
            Err(Malformed),
            SiteTemplate::parse(Grammar::Plain, "x").render(Values::new(&encoder.bytes), Values::new(&[]), &mut out)
        );
        assert_eq!(b"x<?> 1", out.as_slice());
    }
}
