//! Formulas of numbers, as in `| let rate = errors / count`.

use super::lexer::unquoted;
use super::{Field, Formula, QueryError};

/// Maximum nesting depth of a formula.
const MAX_DEPTH: usize = 32;

/// Parses the formula in `text[from..until]`.
pub(super) fn parse(text: &str, from: usize, until: usize) -> Result<Formula, QueryError> {
    let mut reader = FormulaReader { text, at: from, until };
    let formula = reader.sum(0)?;
    match reader.peek() {
        None => Ok(formula),
        Some(_) => Err(reader.error("expected +, -, *, / or the end of the formula")),
    }
}

struct FormulaReader<'t> {
    text: &'t str,
    at: usize,
    until: usize,
}

impl FormulaReader<'_> {
    fn error(&self, message: &str) -> QueryError {
        QueryError::new(self.text, self.at, message)
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..self.until];
        self.at = self.until - rest.trim_start().len();
        self.text[self.at..self.until].chars().next()
    }

    fn take(&mut self, signs: &str) -> Option<char> {
        let sign = self.peek().filter(|sign| signs.contains(*sign))?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    fn sum(&mut self, depth: usize) -> Result<Formula, QueryError> {
        let mut left = self.product(depth)?;
        while let Some(sign) = self.take("+-") {
            left = Formula::Pair(Box::new(left), sign, Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Formula, QueryError> {
        let mut left = self.part(depth)?;
        while let Some(sign) = self.take("*/") {
            left = Formula::Pair(Box::new(left), sign, Box::new(self.part(depth)?));
        }
        Ok(left)
    }

    fn part(&mut self, depth: usize) -> Result<Formula, QueryError> {
        if depth > MAX_DEPTH {
            return Err(self.error("the formula is nested too deeply: use a second | let"));
        }
        if self.take("-").is_some() {
            return Ok(Formula::Negative(Box::new(self.part(depth + 1)?)));
        }
        if self.take("(").is_some() {
            let inner = self.sum(depth + 1)?;
            return match self.take(")") {
                Some(_) => Ok(inner),
                None => Err(self.error("expected `)`")),
            };
        }
        match self.peek() {
            Some('"') => self.quoted(),
            Some(first) if first.is_ascii_digit() => {
                let digits = self.while_true(|character| character.is_ascii_digit() || character == '.');
                match digits.parse() {
                    Ok(number) => Ok(Formula::Number(number)),
                    Err(_) => Err(self.error("expected a number as 1 or 1.5")),
                }
            }
            Some(first) if first.is_alphabetic() || first == '_' => {
                let begin = self.at;
                self.while_true(|character| character.is_alphanumeric() || "_.".contains(character));
                // The result of a function, as in `p95(duration_ms)`.
                if self.text[self.at..self.until].starts_with('(') {
                    match self.text[self.at..self.until].find(')') {
                        Some(length) => self.at += length + 1,
                        None => return Err(self.error("this parenthesis is not closed: write `)` at its end")),
                    }
                }
                Ok(Formula::Column(Field::named(&self.text[begin..self.at])))
            }
            _ => Err(self.error("expected a column or a number: write | let NAME = a / b")),
        }
    }

    fn while_true(&mut self, accepts: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..self.until];
        let length = rest.find(|character| !accepts(character)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn quoted(&mut self) -> Result<Formula, QueryError> {
        let inner = &self.text[self.at + 1..self.until];
        let mut is_escaped = false;
        for (at, character) in inner.char_indices() {
            match character {
                '"' if !is_escaped => {
                    self.at += at + 2;
                    return Ok(Formula::Column(Field::Extra(unquoted(&inner[..at]).into_owned())));
                }
                character => is_escaped = character == '\\' && !is_escaped,
            }
        }
        Err(self.error("this quote is not closed: write \" at its end"))
    }
}
