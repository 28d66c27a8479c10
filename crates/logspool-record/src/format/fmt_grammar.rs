//! Placeholders of C++: `std::format` and the library {fmt}.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). The grammar is that of {fmt} 9.1:
//! `[argument][:[[fill]align][sign][#][0][width][.precision][type]]`, with the types
//! `a A b B c d e E f F g G o p s x X ?`. `L` and the specs of a program's own types are refused, except for text that
//! the caller has rendered. `}` is not a fill.

use super::argument_type::ArgumentType;
use super::float::Notation;
use super::placeholder::{
    ArgumentCounter, ArgumentRef, FormatError, Placeholder, PlaceholderForm, PlaceholderSpec, PlaceholderType,
    SignRule, TemplateReader,
};

/// Reads a placeholder after its opening brace, up to its closing brace.
pub(super) fn parse(
    reader: &mut TemplateReader<'_>,
    counter: &mut ArgumentCounter,
) -> Result<Placeholder, FormatError> {
    let at = reader.at;
    let argument = argument(reader, counter, &[':'])?;
    let mut parsed = Placeholder {
        at,
        argument,
        form: PlaceholderForm::Plain,
        spec: PlaceholderSpec::PLAIN,
        width_from: None,
        precision_from: None,
        refusal: None,
    };
    if !reader.take(":") {
        return Ok(parsed);
    }
    let start = reader.clone();
    let taken = counter.next;
    match parse_spec(reader, counter, &mut parsed) {
        Ok(()) if reader.rest().starts_with('}') => {}
        refused => {
            // The spec belongs to a type of the program, if the template goes on after it.
            let refusal = refused.err().unwrap_or_else(|| {
                let found = reader.peek().map_or("the end".to_owned(), |character| format!("`{character}`"));
                FormatError::new(reader.at, format!("a type or `}}` is expected, but {found} follows"))
            });
            *reader = start;
            if !skip_foreign(reader) {
                return Err(refusal);
            }
            counter.next = taken;
            return Ok(Placeholder {
                form: PlaceholderForm::Foreign,
                spec: PlaceholderSpec::PLAIN,
                width_from: None,
                precision_from: None,
                refusal: Some(Box::new(refusal)),
                ..parsed
            });
        }
    }
    let spec = &parsed.spec;
    parsed.form = match spec.precision {
        _ if parsed.width_from.is_some() || parsed.precision_from.is_some() => PlaceholderForm::General,
        None if *spec == PlaceholderSpec::PLAIN => PlaceholderForm::Plain,
        Some(precision)
            if *spec
                == (PlaceholderSpec {
                    precision: spec.precision,
                    kind: PlaceholderType::LowerFixed,
                    ..PlaceholderSpec::PLAIN
                }) =>
        {
            PlaceholderForm::Fixed(precision)
        }
        _ => PlaceholderForm::General,
    };
    Ok(parsed)
}

/// Reads the reference to an argument. The next argument is meant if `}` or one of `ends` comes next.
fn argument(
    reader: &mut TemplateReader<'_>,
    counter: &mut ArgumentCounter,
    ends: &[char],
) -> Result<ArgumentRef, FormatError> {
    let at = reader.at;
    match reader.peek() {
        Some(end) if end == '}' || ends.contains(&end) => {
            if counter.has_numbers {
                return Err(FormatError::new(at, "automatic numbering cannot follow numbers; give each `{}` a number"));
            }
            Ok(counter.take())
        }
        Some(first @ '0'..='9') => {
            let number = reader.number()?.unwrap_or_default();
            if reader.at - at > 1 && first == '0' {
                return Err(FormatError::new(at, "the number of an argument has no leading zeros"));
            }
            if counter.next > 0 {
                return Err(FormatError::new(at, "numbers cannot follow automatic numbering; give each `{}` a number"));
            }
            counter.has_numbers = true;
            Ok(ArgumentRef::At(number))
        }
        Some(first) if first.is_ascii_alphabetic() || first == '_' => {
            let name = reader.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
            Ok(ArgumentRef::Named(name.into()))
        }
        Some(other) => Err(FormatError::new(at, format!("`{other}` begins neither a number nor a name"))),
        None => Err(FormatError::new(at, "`{` without `}`; write `{{` for a brace")),
    }
}

fn parse_spec(
    reader: &mut TemplateReader<'_>,
    counter: &mut ArgumentCounter,
    parsed: &mut Placeholder,
) -> Result<(), FormatError> {
    let spec = &mut parsed.spec;
    if let Some((fill, align)) = reader.alignment(false) {
        spec.fill = fill.unwrap_or(' ');
        spec.align = Some(align);
    }
    spec.sign = match reader.peek() {
        Some('+') => SignRule::Plus,
        Some('-') => SignRule::Minus,
        Some(' ') => SignRule::Space,
        _ => SignRule::Absent,
    };
    if spec.sign != SignRule::Absent {
        reader.skip();
    }
    spec.alternate = reader.take("#");
    spec.zero = reader.take("0");
    if spec.zero {
        spec.fill = '0';
    }
    if reader.take("{") {
        parsed.width_from = Some(nested(reader, counter)?);
    } else {
        spec.width = reader.amount("width")?.unwrap_or(0);
    }
    if reader.take(".") {
        if reader.take("{") {
            parsed.precision_from = Some(nested(reader, counter)?);
        } else {
            spec.precision = reader.amount("precision")?;
            if spec.precision.is_none() {
                return reader.error("a precision is expected after `.`");
            }
        }
    }
    if reader.rest().starts_with('L') {
        return reader.error("`L` is not supported: lines do not depend on the locale");
    }
    spec.kind = match reader.peek() {
        None => return reader.error("`{` without `}`; write `{{` for a brace"),
        Some('}') => return Ok(()),
        Some(letter) => match kind(letter) {
            Some(kind) => kind,
            None => return reader.error(format!("`{letter}` is not a type of {{fmt}} that logspool shows")),
        },
    };
    reader.skip();
    Ok(())
}

fn nested(reader: &mut TemplateReader<'_>, counter: &mut ArgumentCounter) -> Result<ArgumentRef, FormatError> {
    let argument = argument(reader, counter, &[])?;
    if reader.take("}") { Ok(argument) } else { reader.error("`}` is expected after a nested argument") }
}

const fn kind(letter: char) -> Option<PlaceholderType> {
    Some(match letter {
        'a' => PlaceholderType::LowerHexFloat,
        'A' => PlaceholderType::UpperHexFloat,
        'b' => PlaceholderType::LowerBinary,
        'B' => PlaceholderType::UpperBinary,
        'c' => PlaceholderType::Character,
        'd' => PlaceholderType::Decimal,
        'e' => PlaceholderType::LowerExponent,
        'E' => PlaceholderType::UpperExponent,
        'f' => PlaceholderType::LowerFixed,
        'F' => PlaceholderType::UpperFixed,
        'g' => PlaceholderType::LowerGeneral,
        'G' => PlaceholderType::UpperGeneral,
        'o' => PlaceholderType::Octal,
        'p' => PlaceholderType::Pointer,
        's' => PlaceholderType::Text,
        'x' => PlaceholderType::LowerHex,
        'X' => PlaceholderType::UpperHex,
        '?' => PlaceholderType::Debug,
        _ => return None,
    })
}

/// Passes over a spec that this grammar does not know, up to its closing brace. Returns false if there is none.
fn skip_foreign(reader: &mut TemplateReader<'_>) -> bool {
    let mut depth = 0_usize;
    loop {
        reader.take_while(|character| !matches!(character, '{' | '}'));
        match reader.peek() {
            Some('{') => depth += 1,
            Some(_) if depth > 0 => depth -= 1,
            end => return end.is_some(),
        }
        reader.skip();
    }
}

/// The notation of a float type, and whether its letters are upper case. `None`: the type is not one for floats.
pub(super) const fn notation(kind: PlaceholderType) -> Option<(Notation, bool)> {
    Some(match kind {
        PlaceholderType::LowerExponent => (Notation::Exponent, false),
        PlaceholderType::UpperExponent => (Notation::Exponent, true),
        PlaceholderType::LowerFixed => (Notation::Fixed, false),
        PlaceholderType::UpperFixed => (Notation::Fixed, true),
        PlaceholderType::LowerGeneral => (Notation::General, false),
        PlaceholderType::UpperGeneral => (Notation::General, true),
        _ => return None,
    })
}

/// The reason why {fmt} refuses `spec` for a value of type `argument`.
pub(super) fn refusal(spec: &PlaceholderSpec, has_precision: bool, argument: ArgumentType) -> Option<String> {
    use ArgumentType as Type;
    use PlaceholderType as Kind;
    let is_integer_type = matches!(
        spec.kind,
        Kind::Absent
            | Kind::Decimal
            | Kind::Octal
            | Kind::LowerHex
            | Kind::UpperHex
            | Kind::LowerBinary
            | Kind::UpperBinary
            | Kind::Character
    );
    let fits = match argument {
        Type::Rendered => return None,
        Type::Bool => is_integer_type || spec.kind == Kind::Text,
        Type::Int | Type::Uint => is_integer_type,
        Type::Char => is_integer_type || spec.kind == Kind::Debug,
        Type::Float | Type::Float32 => {
            notation(spec.kind).is_some()
                || matches!(spec.kind, Kind::Absent | Kind::LowerHexFloat | Kind::UpperHexFloat)
        }
        Type::Text | Type::Bytes => matches!(spec.kind, Kind::Absent | Kind::Text | Kind::Debug),
        Type::Pointer => matches!(spec.kind, Kind::Absent | Kind::Pointer),
        Type::None | Type::Tuple => spec.kind == Kind::Absent,
    };
    if !fits {
        return Some(format!("the type does not fit {}", argument.name()));
    }
    let is_number = matches!(argument, Type::Bool | Type::Int | Type::Uint | Type::Char | Type::Float | Type::Float32);
    if !is_number && (spec.sign != SignRule::Absent || spec.alternate || spec.zero) {
        return Some(format!("sign, `#` and `0` are for numbers, not for {}", argument.name()));
    }
    if spec.sign != SignRule::Absent && matches!(argument, Type::Bool | Type::Uint) {
        return Some(format!("a sign is for signed numbers, not for {}", argument.name()));
    }
    if has_precision && !matches!(argument, Type::Float | Type::Float32 | Type::Text | Type::Bytes) {
        return Some(format!("a precision is for floats and text, not for {}", argument.name()));
    }
    let is_character = argument == Type::Char && matches!(spec.kind, Kind::Absent | Kind::Character | Kind::Debug);
    let is_filled = spec.zero && spec.align.is_none();
    if is_character && (spec.sign != SignRule::Absent || spec.alternate || is_filled) {
        return Some("sign, `#` and `0` are for numbers, not for a character".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::braced::{BracedGrammar, BracedTemplate};

    #[test]
    fn errors_name_their_position() {
        for (position, template, reason) in [
            (0, "{", "without `}`"),
            (2, "a {", "without `}`"),
            (0, "}", "a single `}`"),
            (5, "{0} {}", "automatic"),
            (4, "{} {0}", "numbers cannot"),
            (1, "{!}", "neither a number nor a name"),
            (1, "{-1}", "neither a number"),
            (1, "{00}", "leading zeros"),
            (1, "{99999999999}", "too large"),
            (0, "{x", "without `}`"),
            (2, "{0x}", "not expected"),
        ] {
            let template_parsed = BracedTemplate::parse(BracedGrammar::Fmt, template);
            let (_, error) = template_parsed.parts();
            let error = error.unwrap_or_else(|| panic!("{template} is refused"));

            assert!(error.reason.contains(reason), "{template}: {error}");
            assert_eq!(position, error.position, "{template}: {error}");
        }
    }
}
