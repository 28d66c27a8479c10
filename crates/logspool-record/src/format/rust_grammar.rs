//! Placeholders of Rust: `format_args!`.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). The grammar is
//! `[argument][:[[fill]align][sign][#][0][width][.precision][type]]`, with the types `? x? X? o x X p b e E`. Width and
//! precision are numbers, or `argument$`; `.*` takes the precision from the arguments, before the value.

use super::braced::ArgumentCounter;
use super::check::ArgumentType;
use super::placeholder::{
    ArgumentRef, FormatError, Placeholder, PlaceholderForm, PlaceholderSpec, PlaceholderType, SignRule, TemplateReader,
};

/// Reads a placeholder after its opening brace, up to its closing brace.
pub(super) fn parse(
    reader: &mut TemplateReader<'_>,
    counter: &mut ArgumentCounter,
) -> Result<Placeholder, FormatError> {
    let at = reader.at;
    let argument = argument(reader)?;
    let mut spec = PlaceholderSpec::PLAIN;
    let mut amounts = Amounts::default();
    if reader.take(":") {
        parse_spec(reader, &mut spec, &mut amounts)?;
    }
    reader.take_while(char::is_whitespace);
    if amounts.takes_precision {
        amounts.precision_from = Some(counter.take());
    }
    let has_amounts = amounts.width_from.is_some() || amounts.precision_from.is_some();
    let form = match spec.precision {
        _ if has_amounts => PlaceholderForm::General,
        None if spec == PlaceholderSpec::PLAIN => PlaceholderForm::Plain,
        Some(precision) if spec == (PlaceholderSpec { precision: Some(precision), ..PlaceholderSpec::PLAIN }) => {
            PlaceholderForm::Fixed(precision)
        }
        _ => PlaceholderForm::General,
    };
    Ok(Placeholder {
        at,
        argument: argument.unwrap_or_else(|| counter.take()),
        form,
        spec,
        width_from: amounts.width_from,
        precision_from: amounts.precision_from,
        refusal: None,
    })
}

/// Width and precision that come from arguments.
#[derive(Debug, Default)]
struct Amounts {
    width_from: Option<ArgumentRef>,
    precision_from: Option<ArgumentRef>,
    /// `.*`.
    takes_precision: bool,
}

fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

/// Reads the number or name of an argument. `None`: neither comes next.
fn argument(reader: &mut TemplateReader<'_>) -> Result<Option<ArgumentRef>, FormatError> {
    if let Some(number) = reader.number()? {
        return Ok(Some(ArgumentRef::At(number)));
    }
    if !reader.peek().is_some_and(is_name_start) {
        return Ok(None);
    }
    let name = reader.take_while(|character| character.is_alphanumeric() || character == '_');
    Ok(Some(ArgumentRef::Named(name.into())))
}

/// Reads an argument that `$` follows. Otherwise nothing is passed over.
fn amount_argument(reader: &mut TemplateReader<'_>) -> Option<ArgumentRef> {
    let mut ahead = reader.clone();
    let argument = argument(&mut ahead).ok()??;
    if !ahead.take("$") {
        return None;
    }
    *reader = ahead;
    Some(argument)
}

fn parse_spec(
    reader: &mut TemplateReader<'_>,
    spec: &mut PlaceholderSpec,
    amounts: &mut Amounts,
) -> Result<(), FormatError> {
    if let Some((fill, align)) = reader.alignment(true) {
        spec.fill = fill.unwrap_or(' ');
        spec.align = Some(align);
    }
    if reader.take("+") {
        spec.sign = SignRule::Plus;
    } else if reader.take("-") {
        spec.sign = SignRule::Minus;
    }
    spec.alternate = reader.take("#");
    // As in Rust, `0$` is a width and not the flag.
    spec.zero = !reader.rest().starts_with("0$") && reader.take("0");
    amounts.width_from = amount_argument(reader);
    if amounts.width_from.is_none() {
        spec.width = reader.amount("width")?.unwrap_or(0);
    }
    if reader.take(".") {
        amounts.takes_precision = reader.take("*");
        if !amounts.takes_precision {
            amounts.precision_from = amount_argument(reader);
        }
        if !amounts.takes_precision && amounts.precision_from.is_none() {
            spec.precision = reader.amount("precision")?;
            if spec.precision.is_none() {
                return reader.error("a precision is expected after `.`");
            }
        }
    }
    let at = reader.at;
    let letters = reader.take_while(|character| !character.is_whitespace() && !matches!(character, '{' | '}'));
    spec.kind = match letters {
        "" => PlaceholderType::Absent,
        "?" => PlaceholderType::Debug,
        "x?" => PlaceholderType::DebugLowerHex,
        "X?" => PlaceholderType::DebugUpperHex,
        "o" => PlaceholderType::Octal,
        "x" => PlaceholderType::LowerHex,
        "X" => PlaceholderType::UpperHex,
        "p" => PlaceholderType::Pointer,
        "b" => PlaceholderType::LowerBinary,
        "e" => PlaceholderType::LowerExponent,
        "E" => PlaceholderType::UpperExponent,
        other => return Err(FormatError::new(at, format!("`{other}` is not a type of Rust's format strings"))),
    };
    Ok(())
}

/// The reason why `spec` does not fit a value of type `argument`.
pub(super) fn refusal(spec: &PlaceholderSpec, argument: ArgumentType) -> Option<String> {
    use ArgumentType as Type;
    use PlaceholderType as Kind;
    let is_debug = matches!(spec.kind, Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex);
    let fits = match argument {
        Type::Rendered => true,
        _ if is_debug => true,
        Type::Int | Type::Uint => spec.kind != Kind::Pointer,
        Type::Float | Type::Float32 => {
            matches!(spec.kind, Kind::Absent | Kind::LowerExponent | Kind::UpperExponent)
        }
        Type::Bool | Type::Char | Type::Text => spec.kind == Kind::Absent,
        Type::Pointer => spec.kind == Kind::Pointer,
        Type::None | Type::Bytes | Type::Tuple => false,
    };
    (!fits).then(|| format!("the type does not fit {}", argument.name()))
}
