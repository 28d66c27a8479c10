//! A query as a tree.
//!
//! A filter is either true or false for a record, never unknown. A comparison with a field that the record does not
//! have is false, so its negation is true. A comparison with a value of another type is false as well. Every store
//! gives the same answer for the same tree.

use super::Pattern;
use crate::record_id::RecordId;

/// A query to a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Selects the records.
    pub filter: Filter,
    /// Aggregates the records. `None`: the answer is the records themselves, newest first.
    pub stage: Option<Stage>,
    /// Earliest time, inclusive, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// End of the time range, exclusive, in nanoseconds since 1970.
    pub until_ns: Option<i64>,
    /// Maximum number of rows.
    pub limit: Option<u64>,
}

/// A query as the user writes it, without the time range and limit that come as options.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Selects the records.
    pub filter: Filter,
    /// The first stage, if a store answers it.
    pub stage: Option<Stage>,
    /// The other stages.
    pub pipeline: Pipeline,
}

impl From<Filter> for Expression {
    /// The query for all records that match.
    fn from(filter: Filter) -> Self {
        Self { filter, stage: None, pipeline: Pipeline::default() }
    }
}

impl Expression {
    /// True if the rows of the answer are records.
    pub fn has_records(&self) -> bool {
        matches!(self.stage, None | Some(Stage::LastBy(_))) && self.pipeline.columns.is_none()
    }
}

/// Selects records.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All records.
    All,
    /// The message contains these words one after the other (see [`Phrase`]).
    Phrase(Phrase),
    /// Compares the value of a field with a literal.
    Compare(Field, Comparison, Literal),
    /// The pattern matches anywhere in the text of a field. Number fields never match. An extra value that is not text
    /// is matched as JSON.
    Matches(Field, Pattern),
    /// The field has a value that is not null.
    Exists(Field),
    /// The field equals a value in the first column of the rows of a query. The query is replaced by its values before a
    /// store is asked.
    In(Field, Box<Expression>),
    /// All of the filters are true.
    And(Vec<Filter>),
    /// At least one of the filters is true.
    Or(Vec<Filter>),
    /// The filter is false.
    Not(Box<Filter>),
}

/// Words that follow each other in a text. A word is a sequence of letters and digits. Case does not matter, and the
/// characters between two words do not matter either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The words in lower case; at least one.
    pub words: Vec<String>,
    /// True if the last word is the begin of a word.
    pub is_prefix: bool,
}

/// A part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are those of Record")]
pub enum Field {
    Time,
    /// Time of arrival at the service.
    Arrived,
    /// How long after its time the record arrived, in nanoseconds. It is negative if the sender's clock is ahead.
    ArrivalDelay,
    /// Hour of the time in UTC, from 0 to 23.
    Hour,
    /// Day of the week of the time in UTC, from 1 (Monday) to 7.
    Weekday,
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
    /// A key of the record's fields, or a path to a value inside a key (see [`super::path`]). If a record has a key twice, the first value is used.
    Extra(String),
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    /// The negation of `Equal`. So it is true if the field is missing.
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// An integer. It is compared with number fields and with numbers in extra keys. For [`Field::Time`] and
    /// [`Field::Arrived`] it is nanoseconds since 1970, for [`Field::Level`] the number of the level.
    Int(i64),
    /// An integer that does not fit in 64 bits with a sign. It is compared like the others, also with the integers that
    /// a store keeps as text: see [`super::large_integer`].
    Large(i128),
    /// A double, for extra keys. It is never infinite and never NaN.
    Float(f64),
    /// Text without NUL characters. Texts are ordered by code points.
    Text(String),
    /// A boolean, for extra keys. It can be equal to a value or not; booleans have no order.
    Bool(bool),
    /// The value null, for extra keys. It can be equal to a value or not. A missing key is not equal to null.
    Null,
}

/// Aggregates the records of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Counts the records for each value of a field, most frequent value first.
    CountBy(Field),
    /// Selects the newest record for each value of a field, newest first. If several records have the newest time, it is
    /// one of them.
    LastBy(Field),
    /// Counts the records in each time interval, oldest interval first. Empty intervals are omitted.
    Histogram {
        /// Length of an interval in nanoseconds. Intervals begin at multiples of this length, counted from 1970.
        interval_ns: i64,
    },
}

/// The steps of a query after the part that the store answers.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    /// The steps in order.
    pub steps: Vec<PipelineStep>,
    /// The columns of the resulting rows. `None`: the rows are records.
    pub columns: Option<Vec<RowColumn>>,
    /// The text of the query, for errors that occur while the steps run.
    pub text: String,
}

/// A step with its position in the text of the query.
#[derive(Debug, Clone)]
pub struct PipelineStep {
    /// Position of the name of the stage.
    pub position: usize,
    /// The work of the step.
    pub work: StepWork,
}

/// A column of rows that are not records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowColumn {
    /// The name of the column.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
}

/// The kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Times in nanoseconds since 1970.
    Time,
    /// Numbers of levels.
    Level,
    /// Any other values.
    Other,
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepWork {
    /// Keeps the rows for which the filter is true.
    Where(Filter),
    /// Replaces the rows by a row for each group.
    Group(Grouping),
    /// Adds the intervals of time that have no rows, with a count of 0.
    Fill {
        /// Length of an interval in nanoseconds.
        interval_ns: i64,
        /// The column that splits the series.
        by: Option<Field>,
    },
    /// Sorts the rows.
    Sort(Vec<SortKey>),
    /// Keeps the rows with the largest numbers of a field, largest first.
    Top {
        /// Number of rows, for each group.
        rows: usize,
        /// The number.
        field: Field,
        /// The group.
        by: Option<Field>,
    },
    /// Keeps the newest record of each value of a field.
    LastBy(Field),
    /// Groups records whose texts are alike.
    Patterns {
        /// True if patterns that were there before the time range are left out.
        only_new: bool,
    },
    /// Counts the most frequent values of the most frequent fields.
    Facets,
    /// Counts records now and a while before.
    Compare {
        /// Length of the while in nanoseconds.
        length_ns: i64,
        /// The group.
        by: Option<Field>,
    },
    /// Keeps the records before and after a record.
    Around {
        /// The record.
        id: RecordId,
        /// How many of them.
        reach: Reach,
        /// They have the same value of this field.
        by: Option<Field>,
    },
    /// Keeps the first rows.
    Limit(u64),
    /// Keeps only these columns.
    Fields(Vec<Field>),
    /// Adds a column with the result of a formula.
    Let(String, Formula),
    /// Adds the named groups of a regular expression as columns.
    Parse(Field, Pattern),
}

/// How many records before and after a record are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those within this time in nanoseconds.
    Time(i64),
    /// This number on each side.
    Records(usize),
}

/// Groups of rows, and the values of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// True if the stage was written as `count`. Then the groups with the greatest counts come first.
    pub is_count: bool,
    /// The values of a group.
    pub aggregates: Vec<Aggregate>,
    /// The keys of a group. Without keys there is one group.
    pub keys: Vec<GroupKey>,
}

/// A value that is calculated for a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The calculation.
    pub function: AggregateFunction,
    /// The column of the result.
    pub name: String,
}

/// The calculation of an aggregate.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AggregateFunction {
    /// The number of rows, or of rows with a value of the field.
    Count(Option<Field>),
    Sum(Field),
    Average(Field),
    Smallest(Field),
    Largest(Field),
    /// The smallest number that is not less than this share of all numbers, in thousandths.
    Percentile(u16, Field),
    /// The number of different values.
    Distinct(Field),
    /// The value in the oldest record.
    First(Field),
    /// The value in the newest record.
    Last(Field),
    /// The share of rows for which the filter is true.
    Share(Filter),
}

/// A key of groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupKey {
    /// The field.
    pub field: Field,
    /// Groups the values by intervals of this length. It is in nanoseconds for times.
    pub bucket: Option<Bucket>,
}

/// The length of the intervals of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bucket {
    /// Nanoseconds.
    Time(i64),
    /// A number.
    Number(f64),
}

/// A column to sort by. Rows without a value come last.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// The column.
    pub field: Field,
    /// True if the greatest value comes first.
    pub is_descending: bool,
}

/// A formula.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A number.
    Number(f64),
    /// The number in a column.
    Column(Field),
    /// A formula with the other sign.
    Negative(Box<Self>),
    /// Two formulas and the sign between them: `+`, `-`, `*` or `/`.
    Pair(Box<Self>, char, Box<Self>),
}
