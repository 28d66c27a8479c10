//! Parses the text of a query into its tree.
//!
//! ```text
//! query   = [ or ] stages
//! or      = and { "or" and }
//! and     = not { [ "and" ] not }
//! not     = "not" not | "(" or ")" | term
//! term    = "*" | word | "phrase" | FIELD ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~" ) value
//!         | FIELD [ "not" ] "in" "(" value { [ "," ] value } ")" | FIELD [ "not" ] "in" "(" query ")"
//!         | FIELD "exists"
//! ```
//!
//! `stage_parser.rs` has the grammar of the stages.

pub(super) use super::lexer::is_keyword;
use super::lexer::{self, QueryToken, TokenKind};
use super::misread;
use super::tree::RowColumn;
use super::{Expression, Field, Filter, Phrase, QueryError};

/// Maximum length of a query in bytes. Chosen: it is far more than a person writes, and enough for a program that lists
/// a thousand ids.
pub const MAX_BYTES: usize = 16 * 1024;

/// Maximum nesting depth of parentheses and `not`. Chosen: recursion of this depth fits on the stack of any thread.
pub const MAX_DEPTH: usize = 64;

/// Maximum number of words, phrases and comparisons in a query. Each of them needs at most four parameters and four
/// levels of an SQL expression. SQLite allows expressions of a thousand levels, and PostgreSQL allows 65,535
/// parameters.
pub const MAX_TERMS: usize = 1_000;

/// Maximum number of regular expressions in a query. Each may take 2 MiB of memory.
pub const MAX_PATTERNS: usize = 16;

/// Maximum number of words in a phrase. In a long message each word may be compared with each word of the phrase.
pub const MAX_PHRASE_WORDS: usize = 100;

const EXPECTED_TERM: &str = "expected a word, a phrase or a comparison";

/// Parses a query. Relative times are relative to `now_ns`, in nanoseconds since 1970.
///
/// ```
/// use logspool_server::query::{parse, Expression, Filter};
///
/// let query = parse(r#"level>=warning "disk full" not host=web-1 | count by logger"#, 0).unwrap();
/// assert_eq!(r#"level>=WARNING and "disk full" and not host="web-1" | count by logger"#, query.to_string());
/// assert_eq!(Expression::from(Filter::All), parse("", 0).unwrap());
/// ```
///
/// # Errors
///
/// The text is not a valid query, or exceeds a limit of this module.
pub fn parse(text: &str, now_ns: i64) -> Result<Expression, QueryError> {
    if text.len() > MAX_BYTES {
        let end = (0..=MAX_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let message = format!("it has {} bytes, more than {MAX_BYTES}: shorten it", text.len());
        return Err(QueryError::new(text, end, message));
    }
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, now_ns, terms: 0, patterns: 0, columns: None };
    let mut filter = if parser.is_at_term() { parser.or(0)? } else { Filter::All };
    let (stage, pipeline) = parser.stages(&mut filter)?;
    match parser.tokens.first() {
        None => Ok(Expression { filter, stage, pipeline }),
        Some(token) if token.kind == TokenKind::Close => Err(parser.error("no parenthesis is open here: remove `)`")),
        Some(_) => Err(parser.error("expected `|` before the next stage, or the end of the query")),
    }
}

pub(super) struct Parser<'t, 'a> {
    pub text: &'a str,
    /// The tokens that are not parsed yet.
    pub tokens: &'t [QueryToken<'a>],
    pub now_ns: i64,
    terms: usize,
    pub patterns: usize,
    /// The columns of the rows before the next stage. `None`: the rows are records.
    pub columns: Option<Vec<RowColumn>>,
}

impl<'a> Parser<'_, 'a> {
    /// Creates an error at the next token.
    pub fn error(&self, message: impl Into<String>) -> QueryError {
        let position = self.tokens.first().map_or(self.text.len(), |token| token.position);
        QueryError::new(self.text, position, message)
    }

    pub fn next(&mut self) -> Option<QueryToken<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    pub fn is_at(&self, kind: TokenKind<'_>) -> bool {
        self.tokens.first().is_some_and(|token| token.kind == kind)
    }

    pub fn take(&mut self, kind: TokenKind<'_>) -> bool {
        let found = self.is_at(kind);
        if found {
            self.next();
        }
        found
    }

    fn is_at_word(&self, word: &str) -> bool {
        self.tokens.first().is_some_and(|token| token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(word))
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_at_word(word);
        if found {
            self.next();
        }
        found
    }

    /// True if the next token belongs to the filter.
    pub fn is_at_term(&self) -> bool {
        !(self.tokens.is_empty()
            || self.is_at(TokenKind::Bar)
            || self.is_at(TokenKind::Close)
            || self.is_at(TokenKind::Comma))
    }

    pub fn or(&mut self, depth: usize) -> Result<Filter, QueryError> {
        let mut any = vec![self.and(depth)?];
        while self.take_word("or") {
            any.push(self.and(depth)?);
        }
        Ok(one_or(any, Filter::Or))
    }

    fn and(&mut self, depth: usize) -> Result<Filter, QueryError> {
        let mut all = vec![self.not(depth)?];
        while self.take_word("and") || self.is_at_term() && !self.is_at_word("or") {
            all.push(self.not(depth)?);
        }
        Ok(one_or(all, Filter::And))
    }

    fn not(&mut self, depth: usize) -> Result<Filter, QueryError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} nested parentheses and `not`: simplify the query")));
        }
        let Some(first) = self.tokens.first().copied() else {
            return Err(self.error(EXPECTED_TERM));
        };
        if self.take_word("not") {
            return Ok(Filter::Not(Box::new(self.not(depth + 1)?)));
        }
        if !self.take(TokenKind::Open) {
            return self.term(depth);
        }
        let inner = self.or(depth + 1)?;
        if self.take(TokenKind::Close) {
            return Ok(inner);
        }
        Err(QueryError::new(self.text, first.position, "this parenthesis is not closed: write `)` at its end"))
    }

    /// Parses the query in parentheses after `in`, if there is one.
    pub fn inner_query(&mut self, depth: usize) -> Result<Option<Expression>, QueryError> {
        let mut open = 0;
        let mut is_end = |token: &QueryToken<'_>| {
            match token.kind {
                TokenKind::Open => open += 1,
                TokenKind::Close => open -= 1,
                _ => {}
            }
            open < 0 || open == 0 && token.kind == TokenKind::Bar
        };
        if self.tokens.iter().find(|token| is_end(token)).is_none_or(|token| token.kind != TokenKind::Bar) {
            return Ok(None);
        }
        if depth >= MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} nested parentheses and queries")));
        }
        let position = self.tokens.first().map_or(self.text.len(), |token| token.position);
        let outer = self.columns.take();
        let mut filter = if self.is_at_term() { self.or(depth + 1)? } else { Filter::All };
        let (stage, pipeline) = self.stages(&mut filter)?;
        self.columns = outer;
        if pipeline.columns.is_none() {
            let message = "the query in parentheses returns whole records: end it with | fields FIELD";
            return Err(QueryError::new(self.text, position, message));
        }
        if !self.take(TokenKind::Close) {
            return Err(self.error("expected `)` at the end of the inner query"));
        }
        Ok(Some(Expression { filter, stage, pipeline }))
    }

    /// Counts a word, phrase or comparison.
    pub fn count_term(&mut self) -> Result<(), QueryError> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(self.error(format!("more than {MAX_TERMS} words, phrases and comparisons: split the query")));
        }
        Ok(())
    }

    /// True if the token with this index is the `in` of a list.
    fn is_at_list(&self, index: usize) -> bool {
        let Some([word, open, ..]) = self.tokens.get(index..) else { return false };
        word.kind == TokenKind::Word && word.text.eq_ignore_ascii_case("in") && open.kind == TokenKind::Open
    }

    fn term(&mut self, depth: usize) -> Result<Filter, QueryError> {
        self.count_term()?;
        let begins = self.tokens;
        let Some(token) = self.next() else { return Err(self.error(EXPECTED_TERM)) };
        let (token, skipped) = self.join_call(token);
        self.tokens = &self.tokens[skipped..];
        let message = match token.kind {
            TokenKind::Word if is_keyword(token.text) => {
                let word = token.text;
                format!("`{word}` joins two conditions: to search for the word, write \"{word}\"")
            }
            TokenKind::Word | TokenKind::Quoted(_) => match self.tokens.first() {
                Some(QueryToken { kind: TokenKind::Operator(operator), .. }) => {
                    self.next();
                    return self.comparison(token, *operator, depth);
                }
                _ if self.is_at_list(0) => return self.list(token, depth),
                _ if self.is_at_word("exists") => {
                    self.next();
                    return self.exists(token);
                }
                _ if self.is_at_word("not") && self.is_at_list(1) => {
                    if depth >= MAX_DEPTH {
                        return Err(self.error(format!("more than {MAX_DEPTH} nested parentheses and `not`")));
                    }
                    self.next();
                    return Ok(Filter::Not(Box::new(self.list(token, depth + 1)?)));
                }
                _ => return self.phrase(token),
            },
            TokenKind::Operator(_) => {
                format!("expected a field before `{}`: write FIELD{}VALUE", token.text, token.text)
            }
            TokenKind::Open | TokenKind::Close | TokenKind::Bar | TokenKind::Comma | TokenKind::Regex(_) => {
                EXPECTED_TERM.to_owned()
            }
        };
        self.tokens = begins;
        Err(self.error(message))
    }

    /// The condition that a field has a value.
    pub fn exists(&self, key: QueryToken<'a>) -> Result<Filter, QueryError> {
        let at_key = |message: String| QueryError::new(self.text, key.position, message);
        if let Some(message) = misread::reason_of_name(key) {
            return Err(at_key(message));
        }
        let Some(field) = field(key) else {
            return Err(at_key("expected a field before `exists`: quote \"exists\" to search for the word".to_owned()));
        };
        self.check_column(&field, key.position)?;
        Ok(Filter::Exists(field))
    }

    fn phrase(&self, token: QueryToken<'a>) -> Result<Filter, QueryError> {
        let error = |message: String| Err(QueryError::new(self.text, token.position, message));
        if let Some(message) = misread::reason(token, self.tokens.first()) {
            return error(message);
        }
        match token.kind {
            TokenKind::Word if token.text == "*" => return Ok(Filter::All),
            TokenKind::Word if token.text.trim_end_matches('*').contains('*') || token.text.ends_with("**") => {
                return error(
                    "`*` is a wildcard at the end of a word only: for another part of a word, write message~\"part\""
                        .to_owned(),
                );
            }
            _ => {}
        }
        self.check_column(&Field::Message, token.position)?;
        let text = match token.kind {
            TokenKind::Quoted(inner) => inner,
            _ => token.text,
        };
        match Phrase::new(text) {
            None => error("no letter or digit to search for: for other characters write message~\"...\"".to_owned()),
            Some(phrase) if phrase.words.len() > MAX_PHRASE_WORDS => {
                error(format!("more than {MAX_PHRASE_WORDS} words in a phrase: shorten it"))
            }
            Some(phrase) => Ok(Filter::Phrase(phrase)),
        }
    }
}

/// The field that a token names. A quoted name is always an extra key.
pub(super) fn field(token: QueryToken<'_>) -> Option<Field> {
    match token.kind {
        TokenKind::Word if !is_keyword(token.text) => Some(Field::named(token.text)),
        TokenKind::Quoted(inner) => Some(Field::Extra(lexer::unquoted(inner).into_owned())),
        _ => None,
    }
}

/// The text of a word or of quoted text.
pub(super) fn text_value(token: QueryToken<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.to_owned()),
        TokenKind::Quoted(inner) => Some(lexer::unquoted(inner).into_owned()),
        _ => None,
    }
}

pub(super) fn one_or(mut filters: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match filters.pop() {
        Some(one) if filters.is_empty() => one,
        Some(last) => {
            filters.push(last);
            several(filters)
        }
        None => Filter::All,
    }
}
