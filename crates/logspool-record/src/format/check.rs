//! Checks a message template before it is registered: whether it fits its grammar, and its arguments.
//!
//! Pipeline stage: capture (see ARCHITECTURE.md).

use super::argument_type::{ArgumentType, TypedArgument};
use super::braced::{BracedGrammar, BracedTemplate};
use super::directive::RenderedBy;
use super::fmt_grammar;
use super::percent::MessageTemplate;
use super::placeholder::{ArgumentRef, FormatError, Placeholder, PlaceholderForm};
use super::rust_grammar;
use crate::definition::Grammar;

/// Checks that `template` fits its grammar, and that it shows `arguments` exactly as its language does.
///
/// Arguments with a name come after those without one.
///
/// ```
/// use logspool_record::definition::Grammar;
/// use logspool_record::format::{ArgumentType, TypedArgument, check};
///
/// let number = [TypedArgument::unnamed(ArgumentType::Float)];
/// assert!(check(Grammar::Fmt, "took {:.3f} ms", &number).is_ok());
/// let error = check(Grammar::Fmt, "took {:.3d} ms", &number).unwrap_err();
/// assert_eq!("the type does not fit a double (at byte 6 of the template)", error.to_string());
/// ```
///
/// # Errors
///
/// [`FormatError`] with the first place that does not fit.
pub fn check(grammar: Grammar, template: &str, arguments: &[TypedArgument<'_>]) -> Result<(), FormatError> {
    if let Some(at) = arguments.iter().rposition(|argument| argument.name.is_none())
        && arguments[..at].iter().any(|argument| argument.name.is_some())
    {
        return Err(FormatError::new(0, format!("argument {at} has no name, but follows an argument with a name")));
    }
    match grammar {
        Grammar::Plain if arguments.is_empty() => Ok(()),
        Grammar::Plain => Err(FormatError::new(template.len(), "a plain text shows no arguments")),
        Grammar::Percent => check_percent(template, arguments),
        Grammar::Fmt => check_braced(BracedGrammar::Fmt, template, arguments),
        Grammar::Rust => check_braced(BracedGrammar::Rust, template, arguments),
    }
}

/// Checks that `template` fits its grammar, where the types of its arguments are not known.
///
/// A template of `%` always fits: without arguments it is a text.
///
/// # Errors
///
/// [`FormatError`] with the first place that does not fit.
pub fn check_grammar(grammar: Grammar, template: &str) -> Result<(), FormatError> {
    let grammar = match grammar {
        Grammar::Plain | Grammar::Percent => return Ok(()),
        Grammar::Fmt => BracedGrammar::Fmt,
        Grammar::Rust => BracedGrammar::Rust,
    };
    match BracedTemplate::parse(grammar, template).parts() {
        (_, Some(error)) => Err(error.clone()),
        (_, None) => Ok(()),
    }
}

fn check_percent(template: &str, arguments: &[TypedArgument<'_>]) -> Result<(), FormatError> {
    if arguments.is_empty() {
        return Ok(());
    }
    let parsed = MessageTemplate::parse(template);
    if !parsed.deferrable() {
        return Err(FormatError::new(0, "the template is not one of `%` with one argument for each directive"));
    }
    let mut at = 0;
    for (index, directive) in parsed.directives().iter().enumerate() {
        at = directive_position(template, at, directive.text());
        let Some(argument) = arguments.get(index) else {
            return Err(FormatError::new(at, format!("there is no argument {index}")));
        };
        let accepted = directive.accepts(argument.kind.percent_kind());
        if argument.kind != ArgumentType::Rendered && accepted != RenderedBy::Deferred {
            return Err(FormatError::new(at, format!("`{}` does not fit {}", directive.text(), argument.kind.name())));
        }
        at += directive.text().len();
    }
    let shown = parsed.directives().len();
    if shown < arguments.len() {
        return Err(FormatError::new(template.len(), format!("argument {shown} is not shown")));
    }
    Ok(())
}

/// Position of the next directive, which is `text`, from `at` on. `%%` is passed over.
fn directive_position(template: &str, mut at: usize, text: &str) -> usize {
    while let Some(found) = template[at..].find('%') {
        at += found;
        if !template[at..].starts_with("%%") {
            debug_assert!(template[at..].starts_with(text));
            return at;
        }
        at += 2;
    }
    at
}

fn check_braced(grammar: BracedGrammar, template: &str, arguments: &[TypedArgument<'_>]) -> Result<(), FormatError> {
    let parsed = BracedTemplate::parse(grammar, template);
    let (placeholders, error) = parsed.parts();
    let mut is_shown = vec![false; arguments.len()];
    for placeholder in placeholders {
        check_placeholder(grammar, placeholder, arguments, &mut is_shown)?;
    }
    if let Some(error) = error {
        return Err(error.clone());
    }
    match is_shown.iter().position(|is_shown| !is_shown) {
        // {fmt} ignores such arguments, and a logger sends a named one as a field.
        Some(index) if grammar == BracedGrammar::Rust && arguments[index].name.is_none() => {
            Err(FormatError::new(template.len(), format!("argument {index} is not shown")))
        }
        _ => Ok(()),
    }
}

fn check_placeholder(
    grammar: BracedGrammar,
    placeholder: &Placeholder,
    arguments: &[TypedArgument<'_>],
    is_shown: &mut [bool],
) -> Result<(), FormatError> {
    let at = placeholder.at;
    let mut find = |argument: &ArgumentRef| {
        let index = match argument {
            ArgumentRef::At(index) if *index < arguments.len() => Ok(*index),
            ArgumentRef::At(index) => Err(format!("there is no argument {index}")),
            ArgumentRef::Named(name) => arguments
                .iter()
                .position(|argument| argument.name == Some(name))
                .ok_or_else(|| format!("there is no argument `{name}`")),
        };
        let index = index.map_err(|reason| FormatError::new(at, reason))?;
        is_shown[index] = true;
        Ok(arguments[index].kind)
    };
    let kind = find(&placeholder.argument)?;
    for (argument, word) in [(&placeholder.width_from, "width"), (&placeholder.precision_from, "precision")] {
        if let Some(argument) = argument
            && !find(argument)?.is_amount()
        {
            return Err(FormatError::new(at, format!("the argument of the {word} is not an integer")));
        }
    }
    if let (Some(refusal), true) = (&placeholder.refusal, kind != ArgumentType::Rendered) {
        return Err((**refusal).clone());
    }
    if placeholder.form == PlaceholderForm::Foreign {
        return Ok(());
    }
    let has_precision = placeholder.spec.precision.is_some() || placeholder.precision_from.is_some();
    let refusal = match grammar {
        BracedGrammar::Fmt => fmt_grammar::refusal(&placeholder.spec, has_precision, kind),
        BracedGrammar::Rust => rust_grammar::refusal(&placeholder.spec, kind),
    };
    refusal.map_or(Ok(()), |reason| Err(FormatError::new(at, reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(grammar: Grammar, template: &str, kinds: &[ArgumentType]) -> Result<(), FormatError> {
        let arguments: Vec<_> = kinds.iter().copied().map(TypedArgument::unnamed).collect();
        check(grammar, template, &arguments)
    }

    #[test]
    fn templates_that_a_language_rejects_are_refused_with_the_position() {
        use ArgumentType::{Bool, Char, Float, Int, Pointer, Text, Uint};
        for (grammar, template, kinds, position, reason) in [
            (Grammar::Fmt, "n {:L}", &[Int][..], 4, "locale"),
            (Grammar::Fmt, "n {:%Y}", &[Int], 4, "`%` is not a type"),
            (Grammar::Fmt, "n {:d}", &[Text], 3, "does not fit text"),
            (Grammar::Fmt, "n {:.2}", &[Int], 3, "a precision is for"),
            (Grammar::Fmt, "n {:+}", &[Uint], 3, "signed"),
            (Grammar::Fmt, "n {:#}", &[Text], 3, "for numbers"),
            (Grammar::Fmt, "n {:05}", &[Char], 3, "for numbers"),
            (Grammar::Fmt, "n {:05}", &[Pointer], 3, "for numbers"),
            (Grammar::Fmt, "n {:2000}", &[Int], 4, "above the limit"),
            (Grammar::Fmt, "n {:{}}", &[Int, Float], 3, "not an integer"),
            (Grammar::Fmt, "n {} {}", &[Int], 6, "no argument 1"),
            (Grammar::Fmt, "n {x}", &[Int], 3, "no argument `x`"),
            (Grammar::Fmt, "n {", &[Int], 2, "without"),
            (Grammar::Rust, "n {}", &[Pointer], 3, "address"),
            (Grammar::Rust, "n {:x}", &[Float], 3, "does not fit"),
            (Grammar::Rust, "n {:s}", &[Text], 4, "not a type of Rust"),
            (Grammar::Rust, "n {}", &[Int, Bool], 4, "argument 1 is not shown"),
            (Grammar::Percent, "%% n %d", &[Text], 5, "does not fit text"),
            (Grammar::Percent, "%d", &[Int, Int], 2, "argument 1 is not shown"),
            (Grammar::Plain, "n", &[Int], 1, "no arguments"),
        ] {
            let error = checked(grammar, template, kinds).expect_err(template);

            assert_eq!(position, error.position, "{template}: {error}");
            assert!(error.reason.contains(reason), "{template}: {error}");
        }
    }

    #[test]
    fn templates_that_a_language_accepts_are_accepted() {
        use ArgumentType::{Bool, Char, Float, Int, Pointer, Rendered, Text, Uint};
        for (grammar, template, kinds) in [
            (Grammar::Fmt, "user {} did {} in {:.3f} ms", &[Text, Int, Float][..]),
            (Grammar::Fmt, "{{}} {:*^+#012.3g} {:?} {:p} {:c} {:05}", &[Float, Text, Pointer, Int, Bool]),
            (Grammar::Fmt, "{1:>{0}} {0:x}", &[Uint, Char]),
            (Grammar::Fmt, "{:%H:%M:{}}", &[Rendered]),
            (Grammar::Fmt, "{}", &[Int, Int]),
            (Grammar::Rust, "{:?} {:#?} {:>8.3} {:08x} {:+} {:e} {0}", &[Text, Char, Float, Int, Int, Float]),
            (Grammar::Rust, "{:.*} {:>0$}", &[Int, Float, Uint]),
            (Grammar::Percent, "%s %d%%", &[Text, Int]),
            (Grammar::Plain, "{ % {{", &[]),
        ] {
            assert_eq!(Ok(()), checked(grammar, template, kinds), "{template}");
        }
    }

    #[test]
    fn names_are_found_and_named_arguments_must_come_last() {
        let named = |name, kind| TypedArgument { name: Some(name), kind };
        let count = TypedArgument::unnamed(ArgumentType::Int);
        let user = named("user", ArgumentType::Text);

        assert_eq!(Ok(()), check(Grammar::Fmt, "{user:>{}} {user}", &[count, user]));
        assert_eq!(Ok(()), check(Grammar::Rust, "{user} {}", &[count, user]));
        assert!(check(Grammar::Rust, "{user} {}", &[user, count]).is_err());
        assert!(check(Grammar::Fmt, "{other}", &[user]).is_err());
    }
}
