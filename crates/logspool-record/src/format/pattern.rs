//! Formatter patterns of the three styles, split into literals and attributes with their conversion.
//!
//! Pipeline stage: format (see ARCHITECTURE.md), while a format is compiled. `%` follows the % operator on a
//! dictionary, `{` follows `str.format(**values)`, and `$` follows `string.Template.substitute(**values)`.

use super::attribute::Attribute;
use super::brace::BraceSpec;
use super::directive::{ArgumentKind, Conversion, Directive, RenderedBy};
use super::percent;
use super::spec::FormatSpec;
use super::style::Style;
use super::unsupported::Unsupported;

/// One piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Box<[u8]>),
    Show(Attribute, AttributeStyle),
}

/// How an attribute is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttributeStyle {
    /// `str(value)`: `%(x)s`, `$x`, `{x!s}`.
    Plain,
    /// `format(value, "")`: the same text for every value that can be sent.
    Formatted,
    Percent(Directive),
    Brace(FieldConversion, BraceSpec),
}

/// The conversion after `!`, applied before the format spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldConversion {
    Nothing,
    Str,
    Repr,
    Ascii,
}

impl AttributeStyle {
    /// Returns which side renders a value of type `kind`; see [`Format::accepts_field`](super::Format::accepts_field).
    pub(super) fn accepts(&self, kind: ArgumentKind) -> RenderedBy {
        use RenderedBy::{Deferred, Mismatch, RenderInCaller};
        let is_other = kind == ArgumentKind::Other;
        match self {
            Self::Plain if is_other => RenderInCaller,
            Self::Formatted if is_other => Mismatch,
            Self::Plain | Self::Formatted => Deferred,
            Self::Percent(directive) if is_other && directive.conversion() == Conversion::Text => RenderInCaller,
            Self::Percent(directive) => match directive.accepts(kind) {
                Deferred => Deferred,
                _ => Mismatch,
            },
            Self::Brace(FieldConversion::Nothing, spec) => spec.accepts(kind),
            Self::Brace(FieldConversion::Str, _) if is_other => RenderInCaller,
            Self::Brace(FieldConversion::Repr, _) if kind == ArgumentKind::Str => Mismatch,
            Self::Brace(..) if is_other => Mismatch,
            Self::Brace(_, spec) => spec.accepts(ArgumentKind::Str),
        }
    }

    /// Whether every value of an attribute of type `kind` can be shown. The floats of a LogRecord are finite, so `%d`
    /// accepts them.
    fn shows(&self, kind: ArgumentKind) -> bool {
        let kind = match (self, kind) {
            (Self::Percent(directive), ArgumentKind::Float) if directive.conversion() == Conversion::Decimal => {
                ArgumentKind::Int
            }
            (_, kind) => kind,
        };
        self.accepts(kind) == RenderedBy::Deferred
    }
}

/// Collects the pieces of a pattern, and joins neighbouring literals.
#[derive(Debug, Default)]
struct Pieces {
    done: Vec<Piece>,
    literal: String,
}

impl Pieces {
    fn show(&mut self, name: &str, show: AttributeStyle, spec: &FormatSpec) -> Result<(), Unsupported> {
        let attribute = match spec.derived(name) {
            Some(derived) => Attribute::Derived(Box::new(derived.clone())),
            None => Attribute::parse(name, spec.cpython)?,
        };
        if attribute.kind().is_some_and(|kind| !show.shows(kind)) {
            return Err(Unsupported::Conversion);
        }
        let show = match show {
            AttributeStyle::Percent(directive) if directive.is_plain_text() => AttributeStyle::Plain,
            AttributeStyle::Percent(directive)
                if directive.is_plain_decimal() && is_always_integer(&attribute, spec) =>
            {
                AttributeStyle::Plain
            }
            show => show,
        };
        self.end_literal();
        self.done.push(Piece::Show(attribute, show));
        Ok(())
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.done.push(Piece::Literal(std::mem::take(&mut self.literal).into_bytes().into()));
        }
    }

    fn finish(mut self) -> Box<[Piece]> {
        self.end_literal();
        self.done.into()
    }
}

fn is_always_integer(attribute: &Attribute, spec: &FormatSpec) -> bool {
    match attribute {
        Attribute::Line | Attribute::LevelNumber => true,
        Attribute::Process => spec.process_id != 0,
        _ => false,
    }
}

/// Splits a format string into pieces.
pub(super) fn compile_text(style: Style, template: &str, spec: &FormatSpec) -> Result<Box<[Piece]>, Unsupported> {
    let mut pieces = Pieces::default();
    match style {
        Style::Percent => compile_percent(template, spec, &mut pieces)?,
        Style::Brace => compile_brace(template, spec, &mut pieces)?,
        Style::Dollar => compile_dollar(template, spec, &mut pieces)?,
    }
    Ok(pieces.finish())
}

fn compile_percent(template: &str, spec: &FormatSpec, pieces: &mut Pieces) -> Result<(), Unsupported> {
    let parsed = percent::parse(template).ok_or(Unsupported::Syntax)?;
    let mut literals = parsed.literals.iter();
    for directive in &parsed.directives {
        pieces.literal.push_str(literals.next().map_or("", |literal| literal));
        let name = directive.key().ok_or(Unsupported::Syntax)?;
        if !directive.width().is_renderable() || !directive.precision().is_renderable() {
            return Err(Unsupported::Syntax);
        }
        pieces.show(name, AttributeStyle::Percent(directive.clone()), spec)?;
    }
    pieces.literal.push_str(literals.next().map_or("", |literal| literal));
    Ok(())
}

fn compile_brace(template: &str, spec: &FormatSpec, pieces: &mut Pieces) -> Result<(), Unsupported> {
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        pieces.literal.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(brace) {
            pieces.literal.push_str(brace);
            rest = behind;
            continue;
        }
        // A closing brace without an opening one is an error, and so is an opening one without a closing one.
        let end = rest.find(['{', '}']).filter(|_| brace == "{").ok_or(Unsupported::Syntax)?;
        if rest.as_bytes()[end] == b'{' {
            return Err(Unsupported::Syntax);
        }
        let (name, show) = parse_replacement(&rest[..end])?;
        pieces.show(name, show, spec)?;
        rest = &rest[end + 1..];
    }
    pieces.literal.push_str(rest);
    Ok(())
}

/// Reads a replacement field: `name`, `name!r`, `name:spec`, `name!r:spec`.
fn parse_replacement(text: &str) -> Result<(&str, AttributeStyle), Unsupported> {
    let name_end = text.find(['!', ':']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_end);
    if name.is_empty() || name.starts_with(|first: char| first.is_numeric()) || name.contains(['.', '[', ']']) {
        return Err(Unsupported::Syntax);
    }
    let mut convert = FieldConversion::Nothing;
    if let Some(behind) = rest.strip_prefix('!') {
        convert = match behind.bytes().next() {
            Some(b's') => FieldConversion::Str,
            Some(b'r') => FieldConversion::Repr,
            Some(b'a') => FieldConversion::Ascii,
            _ => return Err(Unsupported::Syntax),
        };
        rest = &behind[1..];
    }
    let spec = match rest.strip_prefix(':') {
        Some(spec) => spec,
        None if rest.is_empty() => "",
        None => return Err(Unsupported::Syntax),
    };
    let show = match (convert, spec) {
        (FieldConversion::Nothing, "") => AttributeStyle::Formatted,
        (FieldConversion::Str, "") => AttributeStyle::Plain,
        (convert, spec) => AttributeStyle::Brace(convert, BraceSpec::parse(spec).ok_or(Unsupported::Syntax)?),
    };
    Ok((name, show))
}

fn compile_dollar(template: &str, spec: &FormatSpec, pieces: &mut Pieces) -> Result<(), Unsupported> {
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        pieces.literal.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('$') {
            pieces.literal.push('$');
            rest = behind;
            continue;
        }
        let braced = rest.strip_prefix('{');
        let inner = braced.unwrap_or(rest);
        let len = identifier_len(inner);
        let name = &inner[..len];
        rest = &inner[len..];
        if braced.is_some() {
            rest = rest.strip_prefix('}').ok_or(Unsupported::Syntax)?;
        }
        if name.is_empty() {
            return Err(Unsupported::Syntax);
        }
        pieces.show(name, AttributeStyle::Plain, spec)?;
    }
    pieces.literal.push_str(rest);
    Ok(())
}

/// Length of the identifier at the start, as `string.Template` reads one: ASCII letters, digits, underscores.
fn identifier_len(text: &str) -> usize {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return 0;
    }
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(style: Style, template: &str) -> Result<Box<[Piece]>, Unsupported> {
        compile_text(style, template, &FormatSpec::text(style, template))
    }

    #[test]
    fn patterns_that_we_do_not_reproduce_are_refused() {
        for (style, template, reason) in [
            (Style::Percent, "%(message)d", Unsupported::Conversion),
            (Style::Percent, "%(message)r", Unsupported::Conversion),
            (Style::Percent, "%(lineno)c", Unsupported::Conversion),
            (Style::Percent, "%(args)s", Unsupported::Attribute),
            (Style::Percent, "%s", Unsupported::Syntax),
            (Style::Percent, "%(message)*s", Unsupported::Syntax),
            (Style::Percent, "%(message", Unsupported::Syntax),
            (Style::Brace, "{}", Unsupported::Syntax),
            (Style::Brace, "{0}", Unsupported::Syntax),
            (Style::Brace, "{message.upper}", Unsupported::Syntax),
            (Style::Brace, "{message:{width}}", Unsupported::Syntax),
            (Style::Brace, "{message!x}", Unsupported::Syntax),
            (Style::Brace, "{lineno:,}", Unsupported::Syntax),
            (Style::Brace, "{message:d}", Unsupported::Conversion),
            (Style::Brace, "{created:d}", Unsupported::Conversion),
            (Style::Brace, "}", Unsupported::Syntax),
            (Style::Brace, "{message", Unsupported::Syntax),
            (Style::Dollar, "$", Unsupported::Syntax),
            (Style::Dollar, "${message", Unsupported::Syntax),
            (Style::Dollar, "${}", Unsupported::Syntax),
            (Style::Dollar, "$1", Unsupported::Syntax),
        ] {
            assert_eq!(Err(reason), compiled(style, template).map(|_| ()), "{template}");
        }
    }

    #[test]
    fn escaped_placeholders_join_the_literals() {
        for (style, template) in [(Style::Percent, "a%%b"), (Style::Brace, "a{{}}b"), (Style::Dollar, "a$$b")] {
            let pieces = compiled(style, template).expect("supported");

            assert_eq!(1, pieces.len(), "{template}");
        }
    }
}
