//! Functions of the stages that run over the rows of a store.

use super::tree::{AggregateFunction, ColumnKind, Field, Filter, Formula, Pipeline, StepWork};

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

impl Formula {
    /// Calls `found` with each column.
    pub fn columns<'f>(&'f self, found: &mut impl FnMut(&'f Field)) {
        match self {
            Self::Number(_) => {}
            Self::Column(field) => found(field),
            Self::Negative(inner) => inner.columns(found),
            Self::Pair(left, _, right) => {
                left.columns(found);
                right.columns(found);
            }
        }
    }
}
