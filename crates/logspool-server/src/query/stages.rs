//! The stages of a query that run over the rows of a store, as a tree.
//!
//! A store answers the filter and, if it can, the first stage ([`super::Stage`]). The other stages are steps of a
//! pipeline, which reads the rows of the store. So each stage has one meaning for all stores.

use super::formula::Formula;
use super::{Field, Filter, Pattern};
use crate::record_id::RecordId;

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

impl Pipeline {
    /// The fields of records that the steps read, without those that they make.
    pub fn record_fields(&self) -> Vec<&Field> {
        let mut found: Vec<&Field> = Vec::new();
        let mut made: Vec<&str> = Vec::new();
        for step in &self.steps {
            let mut add = |field| found.push(field);
            let mut are_records = true;
            match &step.work {
                StepWork::Where(filter) => filter.fields(&mut add),
                StepWork::Group(grouping) => {
                    grouping.keys.iter().for_each(|key| add(&key.field));
                    grouping.aggregates.iter().filter_map(|aggregate| aggregate.function.field()).for_each(add);
                    are_records = false;
                }
                StepWork::Fields(fields) => {
                    fields.iter().for_each(add);
                    are_records = false;
                }
                StepWork::Sort(keys) => keys.iter().for_each(|key| add(&key.field)),
                StepWork::Top { field, by, .. } => {
                    add(field);
                    by.iter().for_each(add);
                }
                StepWork::LastBy(field) | StepWork::Parse(field, _) => add(field),
                StepWork::Let(_, formula) => formula.columns(&mut add),
                StepWork::Compare { by, .. } => {
                    by.iter().for_each(add);
                    are_records = false;
                }
                StepWork::Around { by, .. } => by.iter().for_each(add),
                StepWork::Fill { .. } | StepWork::Patterns { .. } | StepWork::Facets => are_records = false,
                StepWork::Limit(_) => {}
            }
            found.retain(|field| !made.contains(&field.name()));
            match &step.work {
                StepWork::Let(name, _) => made.push(name),
                StepWork::Parse(_, pattern) => made.extend(pattern.group_names()),
                _ => {}
            }
            if !are_records {
                break;
            }
        }
        found
    }
}

impl Filter {
    /// Calls `found` with the field of each condition.
    fn fields<'f>(&'f self, found: &mut impl FnMut(&'f Field)) {
        match self {
            Self::Compare(field, ..) | Self::Matches(field, _) | Self::Exists(field) | Self::In(field, _) => {
                found(field)
            }
            Self::And(filters) | Self::Or(filters) => filters.iter().for_each(|filter| filter.fields(found)),
            Self::Not(filter) => filter.fields(found),
            Self::All | Self::Phrase(_) => {}
        }
    }
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        let works = |pipeline: &'_ Self| pipeline.steps.iter().map(|step| step.work.clone()).collect::<Vec<_>>();
        works(self) == works(other)
    }
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

impl ColumnKind {
    /// The kind of a field's values.
    pub fn of(field: &Field) -> Self {
        match field {
            Field::Time | Field::Arrived => Self::Time,
            Field::Level => Self::Level,
            _ => Self::Other,
        }
    }
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

impl AggregateFunction {
    /// The name in a query.
    pub fn name(&self) -> String {
        match self {
            Self::Count(_) => "count".to_owned(),
            Self::Sum(_) => "sum".to_owned(),
            Self::Average(_) => "avg".to_owned(),
            Self::Smallest(_) => "min".to_owned(),
            Self::Largest(_) => "max".to_owned(),
            Self::Percentile(thousandths, _) if thousandths % 10 == 0 => format!("p{}", thousandths / 10),
            Self::Percentile(thousandths, _) => format!("p{}.{}", thousandths / 10, thousandths % 10),
            Self::Distinct(_) => "distinct".to_owned(),
            Self::First(_) => "first".to_owned(),
            Self::Last(_) => "last".to_owned(),
            Self::Share(_) => "share".to_owned(),
        }
    }

    /// The field that the calculation reads.
    pub fn field(&self) -> Option<&Field> {
        match self {
            Self::Count(field) => field.as_ref(),
            Self::Share(_) => None,
            Self::Sum(field)
            | Self::Average(field)
            | Self::Smallest(field)
            | Self::Largest(field)
            | Self::Percentile(_, field)
            | Self::Distinct(field)
            | Self::First(field)
            | Self::Last(field) => Some(field),
        }
    }
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
