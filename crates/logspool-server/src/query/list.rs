//! Parses `FIELD in (VALUE, ...)`.

use super::lexer::{QueryToken, TokenKind};
use super::parser::{self, Parser};
use super::{Comparison, Filter, QueryError, misread};

const EXPECTED_VALUE: &str =
    "expected a value or `)`: write FIELD in (a, \"b c\"), or quote \"in\" to search for the word";

impl<'a> Parser<'_, 'a> {
    /// Parses a list or an inner query from its `in` on. It is true if the field equals any value of it.
    pub fn list(&mut self, key: QueryToken<'a>, depth: usize) -> Result<Filter, QueryError> {
        let at_key = |message: String| QueryError::new(self.text, key.position, message);
        if let Some(message) = misread::reason_of_name(key) {
            return Err(at_key(message));
        }
        let Some(field) = parser::field(key) else {
            return Err(at_key(format!(
                "expected a field before `in`: for a key with this name, write \"{}\"",
                key.text
            )));
        };
        self.check_column(&field, key.position)?;
        self.next();
        let Some(open) = self.next() else { return Err(self.error(EXPECTED_VALUE)) };
        if let Some(inner) = self.inner_query(depth)? {
            return Ok(Filter::In(field, Box::new(inner)));
        }
        let mut any = Vec::new();
        loop {
            let Some(token) = self.tokens.first().copied() else {
                let message = "this list is not closed: write `)` at its end";
                return Err(QueryError::new(self.text, open.position, message));
            };
            match token.kind {
                TokenKind::Close if !any.is_empty() => break,
                TokenKind::Comma if !any.is_empty() => {}
                TokenKind::Quoted(_) => {
                    self.count_term()?;
                    any.push(self.compare(field.clone(), Comparison::Equal, token)?);
                }
                TokenKind::Word if !parser::is_keyword(token.text) => {
                    // Commas belong to the word.
                    for text in token.text.split(',').filter(|text| !text.is_empty()) {
                        self.count_term()?;
                        any.push(self.compare(field.clone(), Comparison::Equal, QueryToken { text, ..token })?);
                    }
                }
                _ => return Err(self.error(EXPECTED_VALUE)),
            }
            self.next();
        }
        self.next();
        Ok(parser::one_or(any, Filter::Or))
    }
}
