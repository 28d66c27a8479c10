//! Message templates with placeholders in braces: parsed once per call site, rendered after the queue.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). `{{` and `}}` are one brace each. A placeholder takes the
//! next argument, the argument with a number, or the extra field of the record with a name.

use super::fmt_grammar;
use super::fmt_render;
use super::line_program::ArgumentForm;
use super::malformed::{MARKER, Malformed};
use super::placeholder::{
    ArgumentCounter, ArgumentRef, FormatError, MAX_AMOUNT, Placeholder, PlaceholderForm, PlaceholderSpec,
    TemplateReader,
};
use super::repr::push_str;
use super::rust_grammar;
use super::rust_render;
use crate::record::{Context, Entry, Value, Values, tag};

/// Maximum number of placeholders of a template.
///
/// Chosen: no message has a hundred placeholders. The bound limits the work that a hostile template can cause.
const MAX_PLACEHOLDERS: usize = 64 * 1024;

/// Maximum bytes of a message whose template shows an argument more than once. Then the rest is left out.
///
/// Chosen: it is the size that all placeholders can reach by their widths. A hostile template could repeat a large
/// argument as often.
const MAX_REPEATED_BYTES: usize = MAX_PLACEHOLDERS * MAX_AMOUNT;

/// Maximum number of extra fields among which a placeholder finds its value. Chosen: as many as an entry for a service
/// has parts. The bound limits the work that a hostile record can cause.
const MAX_NAMED: usize = 1000;

/// The grammars with placeholders in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BracedGrammar {
    Fmt,
    Rust,
}

/// A template with placeholders in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BracedTemplate {
    grammar: BracedGrammar,
    /// The literals: one more than there are placeholders.
    literals: Box<[Box<str>]>,
    placeholders: Box<[Placeholder]>,
    /// Whether the placeholders take the arguments one by one, in the order of the record.
    is_sequential: bool,
    /// The error at which parsing ended, and the text of the template from there on.
    broken: Option<Box<(FormatError, Box<str>)>>,
}

impl BracedTemplate {
    /// Parses `source`. The text after an error is a literal.
    pub(super) fn parse(grammar: BracedGrammar, source: &str) -> Self {
        let mut literals = Vec::new();
        let mut placeholders: Vec<Placeholder> = Vec::new();
        let mut literal = String::new();
        let mut reader = TemplateReader::new(source);
        let mut counter = ArgumentCounter::default();
        let mut broken = None;
        loop {
            literal.push_str(reader.take_while(|character| !matches!(character, '{' | '}')));
            if reader.take("{{") {
                literal.push('{');
            } else if reader.take("}}") {
                literal.push('}');
            } else if reader.rest().is_empty() {
                break;
            } else {
                let start = reader.at;
                match placeholder(grammar, &mut reader, &mut counter) {
                    Ok(_) if placeholders.len() == MAX_PLACEHOLDERS => {
                        let reason = format!("the template has more than {MAX_PLACEHOLDERS} placeholders");
                        broken = Some((FormatError::new(start, reason), source[start..].into()));
                    }
                    Ok(placeholder) => {
                        literals.push(std::mem::take(&mut literal).into_boxed_str());
                        placeholders.push(placeholder);
                        continue;
                    }
                    Err(error) => broken = Some((error, source[start..].into())),
                }
                break;
            }
        }
        literals.push(literal.into_boxed_str());
        let mut positions = 0..;
        let is_sequential = placeholders
            .iter()
            .flat_map(Placeholder::arguments)
            .all(|argument| positions.next().map(ArgumentRef::At).as_ref() == Some(argument));
        Self {
            grammar,
            is_sequential,
            literals: literals.into(),
            placeholders: placeholders.into(),
            broken: broken.map(Box::new),
        }
    }

    /// The placeholders, and the error at which parsing ended.
    pub(super) fn parts(&self) -> (&[Placeholder], Option<&FormatError>) {
        (&self.placeholders, self.broken.as_deref().map(|(error, _)| error))
    }

    /// The literals, each with the form of the argument after it. `None`: the arguments are not taken in order.
    pub(super) fn forms(&self) -> Option<impl Iterator<Item = (&str, Option<Option<ArgumentForm>>)>> {
        if !self.is_sequential || self.broken.is_some() {
            return None;
        }
        let form = |placeholder: &Placeholder| match placeholder.form {
            PlaceholderForm::Plain => Some(ArgumentForm::Plain),
            PlaceholderForm::Fixed(precision) => Some(ArgumentForm::Fixed(precision)),
            PlaceholderForm::General | PlaceholderForm::Foreign => None,
        };
        let forms = self.placeholders.iter().map(move |placeholder| Some(form(placeholder))).chain([None]);
        Some(self.literals.iter().map(|literal| &**literal).zip(forms))
    }

    /// Appends the text for the arguments `values`. `fields` are the values of the record from the first extra field
    /// on.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if a value is missing, or does not fit its placeholder. The text then contains the marker `<?>`.
    #[inline]
    pub(super) fn render(
        &self,
        mut values: Values<'_>,
        fields: Values<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if !self.is_sequential || self.broken.is_some() {
            return self.render_by_reference(values, fields, out);
        }
        let start = out.len();
        let all = values;
        let mut result = Ok(());
        let (first, others) = self.literals.split_first().ok_or(Malformed)?;
        out.extend_from_slice(first.as_bytes());
        for (placeholder, literal) in self.placeholders.iter().zip(others) {
            let value = values.next();
            let rendered = match (placeholder.form, value) {
                (PlaceholderForm::Plain | PlaceholderForm::Fixed(_), Some(value)) => {
                    self.render_frequent(placeholder, value, out)
                }
                // Extra fields are the arguments after those without a name.
                (_, None) if !fields.rest().is_empty() => {
                    out.truncate(start);
                    return self.render_by_reference(all, fields, out);
                }
                (_, value) => {
                    let width = placeholder.width_from.as_ref().map(|_| values.next());
                    let precision = placeholder.precision_from.as_ref().map(|_| values.next());
                    self.render_resolved(placeholder, value, width, precision, out)
                }
            };
            if rendered.is_err() {
                result = Err(Malformed);
            }
            out.extend_from_slice(literal.as_bytes());
        }
        result
    }

    #[inline]
    fn render_frequent(&self, placeholder: &Placeholder, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match (placeholder.form, value) {
            (PlaceholderForm::Plain, Value::Int(number)) => super::integer::push_signed(out, number),
            (PlaceholderForm::Plain, Value::Str(text)) => out.extend_from_slice(text.as_bytes()),
            (PlaceholderForm::Fixed(precision), Value::Float(number)) if number.is_finite() => {
                if number.is_sign_negative() {
                    out.push(b'-');
                }
                super::float::push_fixed(out, number.abs(), precision, super::float::Point::AsNeeded);
            }
            _ => return self.render_value(placeholder, placeholder.spec, value, out),
        }
        Ok(())
    }

    /// Renders a template whose placeholders do not take the arguments in order.
    fn render_by_reference(&self, values: Values<'_>, fields: Values<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        let positional: Vec<Value<'_>> = values.collect();
        let value_of = |argument: &ArgumentRef| match argument {
            ArgumentRef::At(position) => match positional.get(*position) {
                Some(value) => Some(*value),
                None => named_values(fields).take(MAX_NAMED).nth(position - positional.len()).map(|(_, value)| value),
            },
            ArgumentRef::Named(name) => {
                named_values(fields).take(MAX_NAMED).find(|(key, _)| *key == &**name).map(|(_, value)| value)
            }
        };
        let mut result = Ok(());
        let (first, others) = self.literals.split_first().ok_or(Malformed)?;
        out.extend_from_slice(first.as_bytes());
        for (placeholder, literal) in self.placeholders.iter().zip(others) {
            if out.len() - start > MAX_REPEATED_BYTES {
                out.extend_from_slice(MARKER.as_bytes());
                return Err(Malformed);
            }
            let width = placeholder.width_from.as_ref().map(value_of);
            let precision = placeholder.precision_from.as_ref().map(value_of);
            let value = value_of(&placeholder.argument);
            if self.render_resolved(placeholder, value, width, precision, out).is_err() {
                result = Err(Malformed);
            }
            out.extend_from_slice(literal.as_bytes());
        }
        if let Some((_, rest)) = self.broken.as_deref() {
            out.extend_from_slice(rest.as_bytes());
            return super::percent::push_unused_arguments(None, &mut { values }, out);
        }
        result
    }

    /// Renders a placeholder whose width and precision may come from arguments.
    fn render_resolved(
        &self,
        placeholder: &Placeholder,
        value: Option<Value<'_>>,
        width: Option<Option<Value<'_>>>,
        precision: Option<Option<Value<'_>>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut spec = placeholder.spec;
        let amounts = [(width, &mut spec.width)].into_iter().try_for_each(|(amount, place)| {
            amount.map_or(Some(()), |amount| amount_of(amount).map(|amount| *place = amount))
        });
        let amounts = match precision {
            Some(precision) => amount_of(precision).map(|precision| spec.precision = Some(precision)).and(amounts),
            None => amounts,
        };
        match (value, amounts) {
            (Some(value), Some(())) => self.render_value(placeholder, spec, value, out),
            (value, _) => {
                value.into_iter().for_each(|value| push_str(out, value));
                out.extend_from_slice(MARKER.as_bytes());
                Err(Malformed)
            }
        }
    }

    fn render_value(
        &self,
        placeholder: &Placeholder,
        spec: PlaceholderSpec,
        value: Value<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let start = out.len();
        let rendered = match (value, self.grammar) {
            (Value::Rendered(text), _) => {
                out.extend_from_slice(text.as_bytes());
                return Ok(());
            }
            _ if placeholder.form == PlaceholderForm::Foreign => Err(Malformed),
            (_, BracedGrammar::Fmt) => fmt_render::push_value(&spec, value, out),
            (_, BracedGrammar::Rust) => rust_render::push_value(&spec, value, out),
        };
        if rendered.is_err() {
            out.truncate(start);
            push_str(out, value);
            out.extend_from_slice(MARKER.as_bytes());
        }
        rendered
    }
}

/// Reads a placeholder, whose opening brace comes next.
fn placeholder(
    grammar: BracedGrammar,
    reader: &mut TemplateReader<'_>,
    counter: &mut ArgumentCounter,
) -> Result<Placeholder, FormatError> {
    if reader.rest().starts_with('}') {
        return reader.error("a single `}`; write `}}` for a brace");
    }
    if !reader.rest().contains('}') {
        return reader.error("`{` without `}`; write `{{` for a brace");
    }
    reader.skip();
    let parsed = match grammar {
        BracedGrammar::Fmt => fmt_grammar::parse(reader, counter)?,
        BracedGrammar::Rust => rust_grammar::parse(reader, counter)?,
    };
    if reader.take("}") {
        return Ok(parsed);
    }
    match reader.peek() {
        Some(other) => reader.error(format!("`{other}` is not expected here")),
        None => reader.error("`}` is expected here"),
    }
}

/// A width or a precision that an argument holds. `None`: it is not a number, or beyond the limit.
fn amount_of(value: Option<Value<'_>>) -> Option<usize> {
    let amount = match value? {
        Value::Int(number) => usize::try_from(number).ok()?,
        Value::Uint(number) => usize::try_from(number).ok()?,
        _ => return None,
    };
    Some(amount).filter(|amount| *amount <= MAX_AMOUNT)
}

/// The extra fields among `values`.
pub(super) fn named_values<'a>(mut values: Values<'a>) -> impl Iterator<Item = (&'a str, Value<'a>)> {
    std::iter::from_fn(move || {
        while values.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
            if let Entry::Context(Context::Field(key, value)) = values.next_entry()? {
                return Some((key, value));
            }
        }
        None
    })
}
