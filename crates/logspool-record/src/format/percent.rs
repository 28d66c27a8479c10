//! Message templates: `msg % args`, parsed once per call site and rendered after the queue.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). Both parse the template. Capture also asks each directive
//! which types it accepts.
//!
//! The grammar is CPython's `unicode_format_arg_parse`: `%`, `(key)`, flags `-+ #0`, width, `.precision`, one of `h l
//! L`, conversion. `%%` is a per cent sign.

use super::directive::{ArgumentKind, Conversion, Directive, DirectiveParts, Flags, RenderedBy, WidthOrPrecision};
use super::float::{Case, Notation};
use super::integer::Base;
use super::line_program::ArgumentForm;
use super::malformed::{MARKER, Malformed};
use super::repr::{NonAscii, push_repr, push_str};
use crate::record::{Value, Values};

/// Maximum number of directives of a template. A template with more directives is treated like one that Python rejects.
///
/// Chosen: no message has a hundred directives. Together with [`MAX_AMOUNT`](super::directive::MAX_AMOUNT) for each
/// directive, the bound limits the text that a hostile template can make of few bytes.
const MAX_DIRECTIVES: usize = 64 * 1024;

/// A message template with %-directives.
///
/// ```
/// use logspool_record::format::MessageTemplate;
/// use logspool_record::{Encoder, Values};
///
/// let template = MessageTemplate::parse("user %s did %d in %.3f ms");
/// let mut encoder = Encoder::new();
/// encoder.str("ann").int(3).float(0.0625);
/// let mut out = Vec::new();
/// template.render(&mut Values::new(&encoder.bytes), &mut out).expect("values fit");
/// assert_eq!(b"user ann did 3 in 0.062 ms", out.as_slice());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageTemplate {
    source: Box<str>,
    parsed: Option<ParsedTemplate>,
}

/// Literal texts, with one directive between two consecutive texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedTemplate {
    /// The literals: one more than there are directives.
    pub(super) literals: Box<[Box<str>]>,
    pub(super) directives: Box<[Directive]>,
}

impl MessageTemplate {
    /// Parses `source`. The template is not [`deferrable`](Self::deferrable) if Python would reject it, or if a
    /// directive takes more than one argument.
    pub fn parse(source: &str) -> Self {
        let parsed = parse(source).filter(|parsed| parsed.directives.iter().all(takes_one_argument));
        Self { source: source.into(), parsed }
    }

    /// The template as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the collector can render the template. It must have no mapping keys, no `*` and no errors.
    pub const fn deferrable(&self) -> bool {
        self.parsed.is_some()
    }

    /// The directives in order. Each takes one argument. Empty if the template is not deferrable.
    pub fn directives(&self) -> &[Directive] {
        self.parsed.as_ref().map_or(&[], |parsed| &parsed.directives)
    }

    /// The literals, each with the form of the argument after it. `None`: the template is not deferrable.
    pub(super) fn forms(&self) -> Option<impl Iterator<Item = (&str, Option<Option<ArgumentForm>>)>> {
        let parsed = self.parsed.as_ref()?;
        let forms = parsed.directives.iter().map(|directive| Some(directive.argument_form())).chain([None]);
        Some(parsed.literals.iter().map(|literal| &**literal).zip(forms))
    }

    /// Appends `source % tuple(values)`.
    ///
    /// Python formats a message only if there are arguments. A caller without arguments shows [`source`](Self::source)
    /// unchanged.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if values are missing or left over, or have a type that the directive does not accept. The text is
    /// still written, with the marker `<?>` at each such place.
    pub fn render(&self, values: &mut Values<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let Some(parsed) = &self.parsed else {
            out.extend_from_slice(self.source.as_bytes());
            return push_unused_arguments(values.next(), values, out).and(Err(Malformed));
        };
        let mut result = Ok(());
        let (first, others) = parsed.literals.split_first().ok_or(Malformed)?;
        out.extend_from_slice(first.as_bytes());
        for (directive, literal) in parsed.directives.iter().zip(others) {
            if push_value(directive, values.next(), out).is_err() {
                result = Err(Malformed);
            }
            out.extend_from_slice(literal.as_bytes());
        }
        if values.rest().is_empty() {
            return result;
        }
        push_unused_arguments(values.next(), values, out)
    }

    /// Appends `source % tuple(values)`, for values with their kinds. `None`: a value is missing, left over, `None`, or
    /// not one that the collector renders for its directive. Part of the text may then be written.
    pub fn render_values<'a>(
        &self,
        values: impl ExactSizeIterator<Item = Option<(ArgumentKind, Value<'a>)>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let parsed = self.parsed.as_ref().filter(|parsed| parsed.directives.len() == values.len())?;
        let (first, others) = parsed.literals.split_first()?;
        out.extend_from_slice(first.as_bytes());
        for ((directive, literal), value) in parsed.directives.iter().zip(others).zip(values) {
            let (kind, value) = value?;
            if directive.accepts(kind) != RenderedBy::Deferred {
                return None;
            }
            directive.render(value, out).ok()?;
            out.extend_from_slice(literal.as_bytes());
        }
        Some(())
    }
}

#[inline]
fn push_value(directive: &Directive, value: Option<Value<'_>>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let rendered = match value {
        Some(value) => {
            let rendered = directive.render(value, out);
            if rendered.is_err() {
                push_str(out, value);
            }
            rendered
        }
        None => Err(Malformed),
    };
    if rendered.is_err() {
        out.extend_from_slice(MARKER.as_bytes());
    }
    rendered
}

#[cold]
pub(super) fn push_unused_arguments<'a>(
    first: Option<Value<'a>>,
    values: &mut Values<'a>,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    out.extend_from_slice(MARKER.as_bytes());
    for value in first.into_iter().chain(values) {
        out.push(b' ');
        push_repr(out, value, NonAscii::Keep);
    }
    Err(Malformed)
}

fn takes_one_argument(directive: &Directive) -> bool {
    directive.key().is_none()
        && directive.width() != WidthOrPrecision::Argument
        && directive.precision() != WidthOrPrecision::Argument
}

/// Splits a %-template. `None`: Python raises for all arguments.
pub(super) fn parse(source: &str) -> Option<ParsedTemplate> {
    let mut literals = Vec::new();
    let mut directives = Vec::new();
    let mut literal = String::new();
    let mut rest = source;
    while let Some(at) = rest.find('%') {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("%%") {
            literal.push('%');
            rest = behind;
            continue;
        }
        if directives.len() == MAX_DIRECTIVES {
            return None;
        }
        let (directive, behind) = parse_directive(rest)?;
        literals.push(std::mem::take(&mut literal).into_boxed_str());
        directives.push(directive);
        rest = behind;
    }
    literal.push_str(rest);
    literals.push(literal.into_boxed_str());
    Some(ParsedTemplate { literals: literals.into(), directives: directives.into() })
}

/// Reads one directive from the start of `source`, which begins with `%`. Also returns the text after the directive.
fn parse_directive(source: &str) -> Option<(Directive, &str)> {
    let mut rest = source.strip_prefix('%')?;
    let mut key = None;
    if let Some(inner) = rest.strip_prefix('(') {
        let len = key_len(inner)?;
        key = Some(&inner[..len]);
        rest = &inner[len + 1..];
    }
    let mut flags = Flags::default();
    while let Some(flag) = rest.bytes().next() {
        match flag {
            b'#' => flags.alternate = true,
            b'0' => flags.zero = true,
            b'-' => flags.left = true,
            b' ' => flags.space = true,
            b'+' => flags.plus = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let width;
    (width, rest) = parse_amount(rest)?;
    let mut precision = WidthOrPrecision::Absent;
    if let Some(behind) = rest.strip_prefix('.') {
        (precision, rest) = parse_amount(behind)?;
        if precision == WidthOrPrecision::Absent {
            precision = WidthOrPrecision::Fixed(0);
        }
    }
    rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
    let conversion = conversion(rest.bytes().next()?)?;
    rest = &rest[1..];
    let text = &source[..source.len() - rest.len()];
    Some((Directive::new(DirectiveParts { text, key, flags, width, precision, conversion }), rest))
}

/// Length of a mapping key, which may contain balanced parentheses. `source` begins after the opening parenthesis.
fn key_len(source: &str) -> Option<usize> {
    let mut depth = 1;
    source.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

fn parse_amount(source: &str) -> Option<(WidthOrPrecision, &str)> {
    if let Some(rest) = source.strip_prefix('*') {
        return Some((WidthOrPrecision::Argument, rest));
    }
    let digits = source.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Some((WidthOrPrecision::Absent, source));
    }
    // Python raises for numbers beyond its own limits, which are at least i32::MAX.
    let number = source[..digits].parse().ok().filter(|number| *number <= i32::MAX as usize)?;
    Some((WidthOrPrecision::Fixed(number), &source[digits..]))
}

fn conversion(letter: u8) -> Option<Conversion> {
    Some(match letter {
        b's' => Conversion::Text,
        b'r' => Conversion::Repr,
        b'a' => Conversion::Ascii,
        b'd' | b'i' | b'u' => Conversion::Decimal,
        b'o' => Conversion::Based(Base::Octal),
        b'x' => Conversion::Based(Base::LowerHex),
        b'X' => Conversion::Based(Base::UpperHex),
        b'f' => Conversion::Float(Notation::Fixed, Case::Lower),
        b'F' => Conversion::Float(Notation::Fixed, Case::Upper),
        b'e' => Conversion::Float(Notation::Exponent, Case::Lower),
        b'E' => Conversion::Float(Notation::Exponent, Case::Upper),
        b'g' => Conversion::Float(Notation::General, Case::Lower),
        b'G' => Conversion::Float(Notation::General, Case::Upper),
        b'c' => Conversion::Character,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ArgumentKind, RenderedBy};
    use super::*;
    use crate::record::Encoder;

    fn rendered(template: &str, encoder: &Encoder) -> (String, Result<(), Malformed>) {
        let mut out = Vec::new();
        let result = MessageTemplate::parse(template).render(&mut Values::new(&encoder.bytes), &mut out);
        (String::from_utf8(out).expect("UTF-8"), result)
    }

    #[test]
    fn directives_without_exactly_one_argument_are_not_deferrable() {
        for source in
            ["%", "a%", "%z", "%(a)s", "%*d", "%.*f", "%5%", "%hhd", "%.-3f", "%é", "%(a", "%99999999999999999999d"]
        {
            assert!(!MessageTemplate::parse(source).deferrable(), "{source}");
        }
        for source in ["", "plain", "100%%", "%ld", "%-+ #05.3d", "%.f"] {
            assert!(MessageTemplate::parse(source).deferrable(), "{source}");
        }
    }

    #[test]
    fn directives_keep_their_source_text() {
        let template = MessageTemplate::parse("a %% %-5.2s|%ld%r");
        let texts: Vec<_> = template.directives().iter().map(Directive::text).collect();

        assert_eq!(vec!["%-5.2s", "%ld", "%r"], texts);
    }

    #[test]
    fn numbers_and_text_are_shown_as_python_shows_them() {
        for (expected, template, value) in [
            ("-0xff", "%#x", -255),
            ("-0x0000005", "%#010x", -5),
            ("0o00010", "%#.5o", 8),
            ("0x5       |", "%-#10x|", 5),
            ("-0000005", "%08.3d", -5),
            ("-005    |", "%-08.3d|", -5),
            ("+5", "%+ d", 5),
            (" 5", "% d", 5),
            ("5.000000", "%f", 5),
            ("5", "%s", 5),
        ] {
            let mut encoder = Encoder::new();
            encoder.int(value);

            assert_eq!((expected.to_owned(), Ok(())), rendered(template, &encoder));
        }
        let mut encoder = Encoder::new();
        encoder.str("é☃").float(f64::NEG_INFINITY).bool(true).none().raw_bytes(b"\xff");

        assert_eq!(("   é|-0inf|1|None|b'\\xff'".to_owned(), Ok(())), rendered("%4.1s|%05f|%d|%s|%s", &encoder));
    }

    #[test]
    fn a_rendered_directive_is_copied() {
        let mut encoder = Encoder::new();
        encoder.rendered("   x").rendered("y");

        assert_eq!(("[   x][y]".to_owned(), Ok(())), rendered("[%4r][%d]", &encoder));
    }

    #[test]
    fn values_that_do_not_fit_leave_a_marker() {
        let mut encoder = Encoder::new();
        encoder.str("a");

        assert_eq!(("a <?>".to_owned(), Err(Malformed)), rendered("%s %s", &encoder));
        assert_eq!(("a<?>!".to_owned(), Err(Malformed)), rendered("%d!", &encoder));
        assert_eq!(("x<?> 'a'".to_owned(), Err(Malformed)), rendered("x", &encoder));
        assert_eq!(("a<?>".to_owned(), Err(Malformed)), rendered("%999999d", &encoder));
        assert_eq!(("%z<?> 'a'".to_owned(), Err(Malformed)), rendered("%z", &encoder));
    }

    #[test]
    fn types_are_accepted_as_python_takes_them() {
        use RenderedBy::{Deferred, Mismatch, RenderInCaller};
        for (template, kind, expected) in [
            ("%s", ArgumentKind::Str, Deferred),
            ("%s", ArgumentKind::Other, RenderInCaller),
            ("%r", ArgumentKind::AsciiStr, Deferred),
            ("%r", ArgumentKind::Str, RenderInCaller),
            ("%a", ArgumentKind::Str, Deferred),
            ("%d", ArgumentKind::Float, RenderInCaller),
            ("%d", ArgumentKind::BigInt, Deferred),
            ("%d", ArgumentKind::AsciiStr, Mismatch),
            ("%x", ArgumentKind::Float, Mismatch),
            ("%f", ArgumentKind::None, Mismatch),
            ("%c", ArgumentKind::Int, RenderInCaller),
            ("%c", ArgumentKind::Float, Mismatch),
            ("%2000d", ArgumentKind::Int, RenderInCaller),
        ] {
            assert_eq!(expected, MessageTemplate::parse(template).directives()[0].accepts(kind), "{template}");
        }
    }
}
