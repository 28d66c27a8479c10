//! The steps that look at one row at a time.

use std::sync::Arc;

use super::item::Item;
use super::memory::StepContext;
use super::order::double;
use super::step::{RunningStep, StepFlow};
use crate::query::{Field, Filter, Formula, Pattern, QueryError, holds, number_in};
use crate::value::Value;

/// Keeps the rows for which a filter is true.
pub(super) struct WhereStep(Filter);

impl WhereStep {
    pub fn new(filter: Filter) -> Self {
        Self(filter)
    }
}

impl RunningStep for WhereStep {
    fn take(&mut self, row: Item, to: &mut Vec<Item>, _: &mut StepContext) -> Result<StepFlow, QueryError> {
        if holds(&self.0, &row) {
            to.push(row);
        }
        Ok(StepFlow::Continue)
    }
}

/// Keeps the first rows.
pub(super) struct LimitStep(u64);

impl LimitStep {
    pub fn new(rows: u64) -> Self {
        Self(rows)
    }
}

impl RunningStep for LimitStep {
    fn take(&mut self, row: Item, to: &mut Vec<Item>, _: &mut StepContext) -> Result<StepFlow, QueryError> {
        if self.0 > 0 {
            self.0 -= 1;
            to.push(row);
        }
        Ok(if self.0 == 0 { StepFlow::Full } else { StepFlow::Continue })
    }
}

/// Keeps some columns.
pub(super) struct FieldsStep(Vec<(Arc<str>, Field)>);

impl FieldsStep {
    pub fn new(fields: &[Field]) -> Self {
        Self(fields.iter().map(|field| (field.name().into(), field.clone())).collect())
    }
}

impl RunningStep for FieldsStep {
    fn take(&mut self, row: Item, to: &mut Vec<Item>, _: &mut StepContext) -> Result<StepFlow, QueryError> {
        let value = |field| row.value(field).unwrap_or(Value::Null);
        to.push(Item::Row(self.0.iter().map(|(name, field)| (name.clone(), value(field))).collect()));
        Ok(StepFlow::Continue)
    }
}

/// Adds the result of a formula.
pub(super) struct LetStep(Arc<str>, Formula);

impl LetStep {
    pub fn new(name: &str, formula: Formula) -> Self {
        Self(name.into(), formula)
    }
}

impl RunningStep for LetStep {
    fn take(&mut self, mut row: Item, to: &mut Vec<Item>, _: &mut StepContext) -> Result<StepFlow, QueryError> {
        let result = calculate(&self.1, &row).filter(|result| result.is_finite());
        row.set(&self.0, result.map(Value::Float));
        to.push(row);
        Ok(StepFlow::Continue)
    }
}

/// The result of a formula. `None`: a column has no number.
fn calculate(formula: &Formula, row: &Item) -> Option<f64> {
    Some(match formula {
        Formula::Number(number) => *number,
        Formula::Column(field) => double(&row.value(field)?)?,
        Formula::Negative(inner) => -calculate(inner, row)?,
        Formula::Pair(left, sign, right) => {
            let (left, right) = (calculate(left, row)?, calculate(right, row)?);
            match sign {
                '+' => left + right,
                '-' => left - right,
                '*' => left * right,
                _ => left / right,
            }
        }
    })
}

/// Adds the named groups of a regular expression. A row that does not match stays as it is.
pub(super) struct ParseStep {
    field: Field,
    names: Vec<Arc<str>>,
    pattern: Pattern,
}

impl ParseStep {
    pub fn new(field: Field, pattern: Pattern) -> Self {
        let names = pattern.group_names().map(Arc::from).collect();
        Self { field, names, pattern }
    }
}

impl RunningStep for ParseStep {
    fn take(&mut self, mut row: Item, to: &mut Vec<Item>, _: &mut StepContext) -> Result<StepFlow, QueryError> {
        let text = row.value(&self.field).map(|value| match value {
            Value::Text(text) => text.into_owned(),
            other => serde_json::to_string(&other).unwrap_or_default(),
        });
        let captures = text.as_deref().and_then(|text| self.pattern.captures(text));
        for name in &self.names {
            let found = captures.as_ref().and_then(|captures| captures.name(name)).map(|found| found.as_str());
            row.set(name, found.map(|text| number_in(text).unwrap_or_else(|| Value::text(text.to_owned()))));
        }
        to.push(row);
        Ok(StepFlow::Continue)
    }
}
