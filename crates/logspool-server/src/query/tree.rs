//! A question as a tree.
//!
//! A filter is true or false of a record, never unknown: a comparison with a field that a record does not have is
//! false, so its negation is true. Every store gives the same answer to the same tree. A comparison with a value of
//! another kind than the field's is false as well.

use super::Pattern;

/// A question to a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Which records.
    pub filter: Filter,
    /// What is made of them; `None`: they themselves, newest first.
    pub stage: Option<Stage>,
    /// From this time on, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Before this time.
    pub until_ns: Option<i64>,
    /// At most so many rows.
    pub limit: Option<u64>,
}

/// A question as it is written: without times and limits from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Which records.
    pub filter: Filter,
    /// What is made of them; `None`: they themselves.
    pub stage: Option<Stage>,
}

/// Which records.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Every one.
    All,
    /// The message holds these words, one after the other (see [`Phrase`]).
    Phrase(Phrase),
    /// The value of a field stands so to another.
    Compare(Field, Comparison, Literal),
    /// The text of a field matches somewhere. Fields with numbers have none; of an extra key it is the text, and of a
    /// value that is none, the value as JSON writes it.
    Matches(Field, Pattern),
    /// All of them hold.
    And(Vec<Filter>),
    /// One of them holds.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
}

/// Words that follow each other. A word is a run of letters and digits, whatever stands between two words, compared
/// without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The words in lower case; at least one.
    pub words: Vec<String>,
}

/// Part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are those of Record")]
pub enum Field {
    Time,
    Level,
    Logger,
    Message,
    File,
    Line,
    Function,
    Host,
    /// Id of the process.
    Process,
    ProcessName,
    /// Id of the thread.
    Thread,
    ThreadName,
    Task,
    TraceId,
    SpanId,
    Exception,
    Stack,
    /// A key of the fields, as it is, with its dots: keys within a value are not reached. Of two with the same name the
    /// first counts.
    Extra(String),
}

/// How two values stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    /// Equal is false: also where the field is missing.
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A whole number: what compares with the fields whose values are numbers, and with numbers in extra keys. For
    /// [`Field::Time`] nanoseconds since 1970, for [`Field::Level`] the number of the level.
    Int(i64),
    /// Another number, in extra keys; never infinite, never NaN.
    Float(f64),
    /// Text, in order of its code points; without NUL characters.
    Text(String),
    /// True or false, in extra keys: equal or not, neither is less.
    Bool(bool),
    /// The value null, in extra keys: equal or not. A key that is missing is not null.
    Null,
}

/// What is made of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// How many there are of each value of a field, the most frequent first.
    CountBy(Field),
    /// How many there are in each interval of time, from the oldest; intervals without any are left out.
    Histogram {
        /// Length of an interval in nanoseconds; intervals begin at multiples of it since 1970.
        interval_ns: i64,
    },
}
