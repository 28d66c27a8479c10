//! Parses the stages of a query.
//!
//! ```text
//! stages    = { "|" stage }
//! stage     = "count" [ "by" keys ] | "stats" aggregate { "," aggregate } [ "by" keys ] | "last" "by" FIELD
//!           | "histogram" LENGTH [ "by" FIELD ] | "where" or | "sort" FIELD [ "desc" ] { "," ... }
//!           | "top" N FIELD [ "by" FIELD ] | "limit" N | "fields" FIELD { "," FIELD } | "let" NAME "=" formula
//!           | "parse" FIELD "/" REGEX "/" | "order" ( "asc" | "desc" ) | "compare" LENGTH [ "by" FIELD ]
//!           | "facets" | ( "patterns" | "errors" ) [ "new" ] | "around" ID ( LENGTH | N ) [ "by" FIELD ] | "trace" ID
//! keys      = key { "," key }
//! key       = FIELD [ LENGTH | NUMBER ]
//! aggregate = ( "count" | "sum" "(" FIELD ")" | ... | "share" "(" or ")" ) [ "as" NAME ]
//! ```

use logspool::nearest::nearest;

use super::field::FieldKind;
use super::lexer::{self, Operator, QueryToken, TokenKind};
use super::parser::{self, Parser};
use super::tree::{
    Aggregate, AggregateFunction, Bucket, ColumnKind, GroupKey, Grouping, Pipeline, PipelineStep, Reach, RowColumn,
    SortKey, StepWork,
};
use super::{Comparison, Field, Filter, Literal, Pattern, QueryError, Stage, formula, misread, path, time};
use crate::record_id::RecordId;

/// Maximum number of stages.
pub const MAX_STAGES: usize = 32;

/// Maximum number of records on each side of a record.
const MAX_NEIGHBOURS: usize = 10_000;

/// The number of the level `error`.
const ERROR: i64 = 40;

/// Maximum number of columns that a stage may make.
const MAX_COLUMNS: usize = 64;

/// The names of remarks on an answer. A row has other columns, too.
const RESERVED_NAMES: [&str; 4] = ["error", "future", "left_out", "warnings"];

/// The columns of the stage `facets`.
pub const FACET_COLUMNS: [&str; 5] = ["field", "records", "values", "value", "count"];

const STAGES: [&str; 18] = [
    "count",
    "stats",
    "last",
    "histogram",
    "compare",
    "where",
    "sort",
    "order",
    "top",
    "limit",
    "fields",
    "let",
    "parse",
    "patterns",
    "errors",
    "around",
    "trace",
    "facets",
];

const FUNCTIONS: [&str; 11] = ["count", "sum", "avg", "min", "max", "p50", "p95", "p99", "distinct", "first", "last"];

/// Stages and functions of other tools, with the names here.
const OTHER_NAMES: [(&str, &str); 20] = [
    ("head", "limit"),
    ("take", "limit"),
    ("tail", "limit"),
    ("filter", "where"),
    ("search", "where"),
    ("table", "fields"),
    ("keep", "fields"),
    ("project", "fields"),
    ("select", "fields"),
    ("eval", "let"),
    ("extend", "let"),
    ("math", "let"),
    ("orderby", "sort"),
    ("summarize", "stats"),
    ("group", "stats"),
    ("timechart", "histogram"),
    ("timeslice", "histogram"),
    ("rex", "parse"),
    ("extract", "parse"),
    ("regexp", "parse"),
];

const OTHER_FUNCTIONS: [(&str, &str); 12] = [
    ("average", "avg"),
    ("mean", "avg"),
    ("median", "p50"),
    ("minimum", "min"),
    ("maximum", "max"),
    ("dc", "distinct"),
    ("uniq", "distinct"),
    ("unique", "distinct"),
    ("count_uniq", "distinct"),
    ("count_distinct", "distinct"),
    ("earliest", "first"),
    ("latest", "last"),
];

impl<'a> Parser<'_, 'a> {
    /// Parses all stages. A condition that can be part of the filter is added to it.
    pub(super) fn stages(&mut self, filter: &mut Filter) -> Result<(Option<Stage>, Pipeline), QueryError> {
        let mut stage = None;
        let mut steps = Vec::new();
        let mut count = 0;
        while self.take(TokenKind::Bar) {
            count += 1;
            if count > MAX_STAGES {
                return Err(self.error(format!("more than {MAX_STAGES} stages: simplify the query")));
            }
            if self.is_at(TokenKind::Bar) {
                return Err(self.error("`||` joins no conditions: write `or`"));
            }
            let position = self.position();
            if steps.is_empty() && stage.is_none() {
                stage = self.store_stage()?;
                match stage {
                    Some(Stage::Histogram { interval_ns }) => {
                        steps.push(PipelineStep { position, work: StepWork::Fill { interval_ns, by: None } });
                        continue;
                    }
                    Some(_) => continue,
                    None => {}
                }
            }
            for work in self.stage()? {
                if let (StepWork::Around { .. }, false) = (&work, steps.is_empty() && stage.is_none()) {
                    let message = "`around` is the first stage: write conditions before it";
                    return Err(QueryError::new(self.text, position, message));
                }
                match work {
                    StepWork::Where(condition) if steps.is_empty() && stage.is_none() => {
                        let all = std::mem::replace(filter, Filter::All);
                        *filter = match all {
                            Filter::All => condition,
                            all => Filter::And(vec![all, condition]),
                        };
                    }
                    work => steps.push(PipelineStep { position, work }),
                }
            }
        }
        let columns = self.columns.take();
        Ok((stage, Pipeline { steps, columns, text: self.text.to_owned() }))
    }

    fn position(&self) -> usize {
        self.tokens.first().map_or(self.text.len(), |token| token.position)
    }

    /// Parses the first stage if a store can answer it.
    fn store_stage(&mut self) -> Result<Option<Stage>, QueryError> {
        let begins = self.tokens;
        if self.take_word("count") && self.take_word("by") {
            let field = self.column("expected a field: write | count by FIELD")?;
            let is_last = self.tokens.is_empty() || self.is_at(TokenKind::Close);
            let is_whole = is_last || self.is_at(TokenKind::Bar) && field.kind() != FieldKind::Any;
            if is_whole && field != Field::Time {
                let kind = ColumnKind::of(&field);
                let key = RowColumn { name: field.name().to_owned(), kind };
                self.columns = Some(vec![key, RowColumn { name: "count".to_owned(), kind: ColumnKind::Other }]);
                return Ok(Some(Stage::CountBy(field)));
            }
        }
        self.tokens = begins;
        if self.take_word("last") {
            return Ok(Some(Stage::LastBy(self.last()?)));
        }
        if self.take_word("histogram") {
            let interval_ns = self.interval()?;
            if self.tokens.is_empty() || self.is_at(TokenKind::Bar) || self.is_at(TokenKind::Close) {
                self.columns = Some(vec![
                    RowColumn { name: "time".to_owned(), kind: ColumnKind::Time },
                    RowColumn { name: "count".to_owned(), kind: ColumnKind::Other },
                ]);
                return Ok(Some(Stage::Histogram { interval_ns }));
            }
        }
        self.tokens = begins;
        Ok(None)
    }

    fn last(&mut self) -> Result<Field, QueryError> {
        if !self.take_word("by") {
            return Err(self.error("expected `by`: write | last by FIELD"));
        }
        self.column("expected a field: write | last by FIELD")
    }

    fn interval(&mut self) -> Result<i64, QueryError> {
        match self.tokens.first().and_then(|token| time::parse_duration(token.text)) {
            Some(interval_ns) if interval_ns % 1_000_000_000 > 0 => {
                Err(self.error("an interval has whole seconds: write | histogram 1s"))
            }
            Some(interval_ns) => {
                self.next();
                Ok(interval_ns)
            }
            None => Err(self.error("expected a duration: write | histogram 1m (s, m, h, d or w)")),
        }
    }

    fn stage(&mut self) -> Result<Vec<StepWork>, QueryError> {
        let Some(name) = self.tokens.first().copied() else { return Err(self.unknown_stage("")) };
        let lower = name.text.to_ascii_lowercase();
        if name.kind != TokenKind::Word || !STAGES.contains(&&*lower) {
            return Err(self.unknown_stage(&lower));
        }
        self.next();
        Ok(vec![match &*lower {
            "count" => {
                let aggregates = vec![Aggregate { function: AggregateFunction::Count(None), name: "count".to_owned() }];
                self.group(true, aggregates)?
            }
            "stats" => {
                let aggregates = self.list_of(Self::aggregate)?;
                self.group(false, aggregates)?
            }
            "last" => {
                if self.columns.is_some() {
                    return Err(self.error("these rows are not records: write | stats last(FIELD) by FIELD"));
                }
                StepWork::LastBy(self.last()?)
            }
            "histogram" => return self.histogram_by(),
            "where" => {
                if !self.is_at_term() {
                    return Err(self.error("expected a condition: write | where count > 10"));
                }
                StepWork::Where(self.or(0)?)
            }
            "sort" => {
                self.take_word("by");
                StepWork::Sort(self.list_of(Self::sort_key)?)
            }
            "top" => {
                let rows = self.whole_number("top 10 FIELD")?;
                let field = self.column("expected a field with numbers: write | top 10 FIELD")?;
                let by = match self.take_word("by") {
                    true => Some(self.column("expected a field: write | top 10 FIELD by FIELD")?),
                    false => None,
                };
                StepWork::Top { rows: usize::try_from(rows).unwrap_or(usize::MAX), field, by }
            }
            "limit" => StepWork::Limit(self.whole_number("limit 10")?),
            "fields" => {
                let fields = self.list_of(|parser| parser.column("expected a field: write | fields time, host"))?;
                let columns =
                    fields.iter().map(|field| RowColumn { name: field.name().to_owned(), kind: self.kind_of(field) });
                let columns = columns.collect();
                self.set_columns(columns)?;
                StepWork::Fields(fields)
            }
            "let" => self.assignment()?,
            "order" => match (self.take_word("asc"), self.take_word("desc")) {
                (false, false) => {
                    return Err(self.error("expected `asc` or `desc`: write | order asc, or | sort FIELD"));
                }
                (is_ascending, _) => {
                    self.check_column(&Field::Time, name.position)?;
                    StepWork::Sort(vec![SortKey { field: Field::Time, is_descending: !is_ascending }])
                }
            },
            "compare" => self.compare_stage(name)?,
            "patterns" | "errors" => {
                self.needs_records(name)?;
                let only_new = self.take_word("new");
                let kinds = [ColumnKind::Other, ColumnKind::Time, ColumnKind::Time, ColumnKind::Other];
                let columns = ["count", "first", "last", "pattern", "example", "id"].iter().enumerate();
                let column = |(at, name): (usize, &&str)| RowColumn {
                    name: (*name).to_owned(),
                    kind: kinds.get(at).copied().unwrap_or(ColumnKind::Other),
                };
                self.set_columns(columns.map(column).collect())?;
                let patterns = StepWork::Patterns { only_new };
                if lower == "errors" {
                    let errors = Filter::Compare(Field::Level, Comparison::GreaterOrEqual, Literal::Int(ERROR));
                    return Ok(vec![StepWork::Where(errors), patterns]);
                }
                patterns
            }
            "around" => self.around(name)?,
            "facets" => {
                self.needs_records(name)?;
                let columns = FACET_COLUMNS.map(|name| RowColumn { name: name.to_owned(), kind: ColumnKind::Other });
                self.set_columns(columns.to_vec())?;
                StepWork::Facets
            }
            "trace" => {
                self.needs_records(name)?;
                let Some(id) = self.tokens.first().copied().and_then(parser::text_value) else {
                    return Err(self.error("expected the id of a trace: write | trace ID"));
                };
                self.next();
                let filter = Filter::Compare(Field::TraceId, Comparison::Equal, Literal::Text(id));
                let by_time = SortKey { field: Field::Time, is_descending: false };
                return Ok(vec![StepWork::Where(filter), StepWork::Sort(vec![by_time])]);
            }
            _ => self.parse_stage()?,
        }])
    }

    /// Refuses a stage after rows that are not records.
    fn needs_records(&self, name: QueryToken<'_>) -> Result<(), QueryError> {
        match self.columns {
            None => Ok(()),
            Some(_) => {
                let message = format!("`{}` reads records: write it before | count, | stats or | fields", name.text);
                Err(QueryError::new(self.text, name.position, message))
            }
        }
    }

    fn compare_stage(&mut self, name: QueryToken<'_>) -> Result<StepWork, QueryError> {
        self.needs_records(name)?;
        let Some(length_ns) = self.tokens.first().and_then(|token| time::parse_duration(token.text)) else {
            return Err(self.error("expected a duration: write | compare 1d (s, m, h, d or w)"));
        };
        self.next();
        let by = self.by("write | compare 1d by FIELD")?;
        let mut columns: Vec<_> =
            by.iter().map(|field| RowColumn { name: field.name().to_owned(), kind: self.kind_of(field) }).collect();
        let counts = ["now", "before", "change"];
        columns.extend(counts.map(|name| RowColumn { name: name.to_owned(), kind: ColumnKind::Other }));
        self.set_columns(columns)?;
        Ok(StepWork::Compare { length_ns, by })
    }

    /// Parses `by FIELD`, if it is there.
    fn by(&mut self, form: &str) -> Result<Option<Field>, QueryError> {
        if !self.take_word("by") {
            return Ok(None);
        }
        let begins = self.tokens;
        let field = self.column(&format!("expected a field: {form}"))?;
        if self.kind_of(&field) == ColumnKind::Time {
            self.tokens = begins;
            return Err(self.error("times are no groups: write another field"));
        }
        Ok(Some(field))
    }

    fn around(&mut self, name: QueryToken<'_>) -> Result<StepWork, QueryError> {
        self.needs_records(name)?;
        let form = "write | around ID 30s, or | around ID 10 (`id` of a record in JSON)";
        let Some(id) = self.tokens.first().and_then(|token| RecordId::parse(token.text.trim_matches('"'))) else {
            return Err(self.error(format!("expected the id of a record: {form}")));
        };
        self.next();
        let token = self.tokens.first().copied();
        let reach = token.and_then(|token| match token.text.parse::<usize>() {
            Ok(0) => None,
            Ok(count) => Some(Reach::Records(count.min(MAX_NEIGHBOURS))),
            Err(_) => time::parse_duration(token.text).map(Reach::Time),
        });
        let Some(reach) = reach else { return Err(self.error(format!("expected a duration or a number: {form}"))) };
        self.next();
        let by = self.by("write | around ID 30s by host")?;
        Ok(StepWork::Around { id, reach, by })
    }

    fn unknown_stage(&self, name: &str) -> QueryError {
        let known = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, known)| *known);
        let hint = match known.or_else(|| nearest(name, STAGES)) {
            Some(known) => format!(": did you mean `{known}`?"),
            None => String::new(),
        };
        self.error(format!("expected a stage ({}){hint}", STAGES.join(", ")))
    }

    /// Parses items with commas between them.
    fn list_of<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut items = vec![item(self)?];
        while self.take(TokenKind::Comma) {
            if items.len() >= MAX_COLUMNS {
                return Err(self.error(format!("more than {MAX_COLUMNS} columns: leave some out")));
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Joins the tokens of a column like `p95(duration_ms)` to one.
    pub(super) fn join_call(&self, token: QueryToken<'a>) -> (QueryToken<'a>, usize) {
        let is_call = self.columns.is_some() && token.kind == TokenKind::Word;
        let end = token.position + token.text.len();
        match self.tokens.first() {
            Some(open) if is_call && open.kind == TokenKind::Open && open.position == end => {}
            _ => return (token, 0),
        }
        let mut depth = 0;
        for (at, inner) in self.tokens.iter().enumerate() {
            match inner.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let text = &self.text[token.position..inner.position + inner.text.len()];
                return (QueryToken { text, ..token }, at + 1);
            }
        }
        (token, 0)
    }

    /// Parses the name of a column.
    fn column(&mut self, expected: &str) -> Result<Field, QueryError> {
        let begins = self.tokens;
        let Some(token) = self.next() else { return Err(self.error(expected)) };
        let (token, skipped) = self.join_call(token);
        self.tokens = &self.tokens[skipped..];
        let is_other = token.kind == TokenKind::Word && misread::needs_quotes(token.text);
        match parser::field(token).filter(|_| !is_other) {
            Some(field) if path::has_several(field.name()) && self.columns.is_none() => {
                let message = "a list has several values: compare it in a condition, or write items[0].sku";
                Err(QueryError::new(self.text, token.position, message))
            }
            Some(field) => {
                self.check_column(&field, token.position)?;
                Ok(field)
            }
            None => {
                self.tokens = begins;
                Err(self.error(expected))
            }
        }
    }

    /// Refuses a column that the rows do not have. Records may have any field.
    pub(super) fn check_column(&self, field: &Field, position: usize) -> Result<(), QueryError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        let name = field.name();
        if columns.iter().any(|column| column.name == name) {
            return Ok(());
        }
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        let hint = nearest(name, names.iter().copied()).map(|near| format!(" (did you mean `{near}`?)"));
        let message = format!(
            "the rows have no column `{name}`{}: their columns are {}",
            hint.unwrap_or_default(),
            names.join(", ")
        );
        Err(QueryError::new(self.text, position, message))
    }

    /// The kind of a column's values.
    pub(super) fn kind_of(&self, field: &Field) -> ColumnKind {
        match &self.columns {
            None => ColumnKind::of(field),
            Some(columns) => columns
                .iter()
                .find(|column| column.name == field.name())
                .map_or(ColumnKind::Other, |column| column.kind),
        }
    }

    fn set_columns(&mut self, columns: Vec<RowColumn>) -> Result<(), QueryError> {
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].iter().any(|other| other.name == column.name) {
                return Err(self.error(format!("two columns are called `{}`: rename one by `as NAME`", column.name)));
            }
        }
        if columns.iter().all(|column| RESERVED_NAMES.contains(&&*column.name)) {
            let name = &columns[0].name;
            return Err(self.error(format!(
                "`{name}` alone would look like a remark on the answer: add a column, or rename it by `as NAME`"
            )));
        }
        self.columns = Some(columns);
        Ok(())
    }

    /// Parses the keys of groups after their values.
    fn group(&mut self, is_count: bool, aggregates: Vec<Aggregate>) -> Result<StepWork, QueryError> {
        let keys = match self.take_word("by") {
            true => self.list_of(Self::group_key)?,
            false => Vec::new(),
        };
        let mut columns: Vec<_> = keys
            .iter()
            .map(|key| RowColumn { name: key.field.name().to_owned(), kind: self.kind_of(&key.field) })
            .collect();
        columns.extend(aggregates.iter().map(|aggregate| RowColumn {
            name: aggregate.name.clone(),
            kind: match &aggregate.function {
                AggregateFunction::Smallest(field)
                | AggregateFunction::Largest(field)
                | AggregateFunction::Percentile(_, field)
                | AggregateFunction::First(field)
                | AggregateFunction::Last(field) => self.kind_of(field),
                _ => ColumnKind::Other,
            },
        }));
        self.set_columns(columns)?;
        Ok(StepWork::Group(Grouping { is_count, aggregates, keys }))
    }

    fn group_key(&mut self) -> Result<GroupKey, QueryError> {
        let begins = self.tokens;
        let field = self.column("expected a field: write | count by FIELD")?;
        let is_time = self.kind_of(&field) == ColumnKind::Time;
        let bucket = match self.tokens.first() {
            Some(token) if token.kind == TokenKind::Word && token.text.starts_with(|c: char| c.is_ascii_digit()) => {
                let number = token.text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
                let bucket = match (is_time, time::parse_duration(token.text), number) {
                    (true, Some(length), _) => Bucket::Time(length),
                    (true, None, _) => return Err(self.error("expected a duration: write time 1h (s, m, h, d or w)")),
                    (false, _, Some(number)) => Bucket::Number(number),
                    (false, _, None) => return Err(self.error("expected a number above 0: write queue_ms 500")),
                };
                self.next();
                Some(bucket)
            }
            _ => None,
        };
        // Groups of raw times would be single records. Rows of groups have their intervals already.
        if is_time && bucket.is_none() && self.columns.is_none() {
            self.tokens = begins;
            return Err(self.error("times are counted by interval: write | histogram 1m, or by time 1m"));
        }
        Ok(GroupKey { field, bucket })
    }

    fn aggregate(&mut self) -> Result<Aggregate, QueryError> {
        let begins = self.tokens;
        let expected = "expected a function: write | stats count, sum(FIELD), p95(FIELD) by FIELD";
        let Some(token) = self.next().filter(|token| token.kind == TokenKind::Word) else {
            self.tokens = begins;
            return Err(self.error(expected));
        };
        let name = token.text.to_ascii_lowercase();
        let function = if name == "share" {
            self.expect_open("write share(CONDITION), as share(level>=error)")?;
            let condition = self.or(0)?;
            self.expect_close()?;
            AggregateFunction::Share(condition)
        } else if name == "count" && !self.is_at(TokenKind::Open) {
            AggregateFunction::Count(None)
        } else {
            let make: Box<dyn Fn(Field) -> AggregateFunction> = match &*name {
                "count" => Box::new(|field| AggregateFunction::Count(Some(field))),
                "sum" => Box::new(AggregateFunction::Sum),
                "avg" => Box::new(AggregateFunction::Average),
                "min" => Box::new(AggregateFunction::Smallest),
                "max" => Box::new(AggregateFunction::Largest),
                "distinct" => Box::new(AggregateFunction::Distinct),
                "first" => Box::new(AggregateFunction::First),
                "last" => Box::new(AggregateFunction::Last),
                name => match percentile(name) {
                    Some(thousandths) => Box::new(move |field| AggregateFunction::Percentile(thousandths, field)),
                    None => {
                        self.tokens = begins;
                        let known = OTHER_FUNCTIONS.iter().find(|(other, _)| *other == name).map(|(_, known)| *known);
                        let hint = known.or_else(|| nearest(name, FUNCTIONS));
                        let hint = hint.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                        let message = format!(
                            "unknown function `{}`{hint}: there are {}, and share",
                            token.text,
                            FUNCTIONS.join(", ")
                        );
                        return Err(self.error(message));
                    }
                },
            };
            self.expect_open(&format!("write {name}(FIELD)"))?;
            let field = self.column(&format!("expected a field: write {name}(FIELD)"))?;
            self.expect_close()?;
            let function = make(field.clone());
            let is_number = matches!(
                function,
                AggregateFunction::Sum(_) | AggregateFunction::Average(_) | AggregateFunction::Percentile(..)
            );
            if is_number && self.kind_of(&field) == ColumnKind::Time {
                self.tokens = begins;
                let message = "times have no sum, average or percentiles: write min, max, first or last";
                return Err(self.error(message));
            }
            function
        };
        let name = match self.take_word("as") {
            true => self.name()?,
            false => default_name(&function),
        };
        Ok(Aggregate { function, name })
    }

    fn expect_open(&mut self, form: &str) -> Result<(), QueryError> {
        match self.take(TokenKind::Open) {
            true => Ok(()),
            false => Err(self.error(format!("expected `(`: {form}"))),
        }
    }

    fn expect_close(&mut self) -> Result<(), QueryError> {
        match self.take(TokenKind::Close) {
            true => Ok(()),
            false => Err(self.error("expected `)`")),
        }
    }

    /// Parses a new name.
    fn name(&mut self) -> Result<String, QueryError> {
        match self.tokens.first().copied().and_then(parser::field) {
            Some(field) => {
                self.next();
                Ok(field.name().to_owned())
            }
            None => Err(self.error("expected a name: write as NAME")),
        }
    }

    fn sort_key(&mut self) -> Result<SortKey, QueryError> {
        let field = self.column("expected a field: write | sort FIELD desc")?;
        let is_descending = self.take_word("desc");
        if !is_descending {
            self.take_word("asc");
        }
        Ok(SortKey { field, is_descending })
    }

    fn whole_number(&mut self, form: &str) -> Result<u64, QueryError> {
        match self.tokens.first().and_then(|token| token.text.parse::<u64>().ok()) {
            Some(number @ 1..) => {
                self.next();
                Ok(number)
            }
            _ => Err(self.error(format!("expected a whole number above 0: write | {form}"))),
        }
    }

    fn histogram_by(&mut self) -> Result<Vec<StepWork>, QueryError> {
        let has_time = self.columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column.name == "time"));
        if !has_time {
            return Err(self.error("these rows have no time: write | histogram 1m before | count or | stats"));
        }
        let interval_ns = self.interval()?;
        let mut keys = vec![GroupKey { field: Field::Time, bucket: Some(Bucket::Time(interval_ns)) }];
        let by = match self.take_word("by") {
            true => Some(self.column("expected a field: write | histogram 1m by FIELD")?),
            false => None,
        };
        if by.as_ref().is_some_and(|field| self.kind_of(field) == ColumnKind::Time) {
            return Err(self.error("a histogram has one time: write another field after `by`"));
        }
        keys.extend(by.clone().map(|field| GroupKey { field, bucket: None }));
        let mut columns: Vec<_> = keys
            .iter()
            .map(|key| RowColumn { name: key.field.name().to_owned(), kind: self.kind_of(&key.field) })
            .collect();
        columns.push(RowColumn { name: "count".to_owned(), kind: ColumnKind::Other });
        self.set_columns(columns)?;
        let aggregates = vec![Aggregate { function: AggregateFunction::Count(None), name: "count".to_owned() }];
        Ok(vec![StepWork::Group(Grouping { is_count: false, aggregates, keys }), StepWork::Fill { interval_ns, by }])
    }

    fn assignment(&mut self) -> Result<StepWork, QueryError> {
        let name = self.name()?;
        if !self.take(TokenKind::Operator(Operator::Compare(Comparison::Equal))) {
            return Err(self.error("expected `=`: write | let NAME = a / b"));
        }
        let from = self.position();
        let mut depth = 0;
        while let Some(token) = self.tokens.first() {
            match token.kind {
                TokenKind::Bar => break,
                TokenKind::Open => depth += 1,
                // The end of a query in parentheses.
                TokenKind::Close if depth == 0 => break,
                TokenKind::Close => depth -= 1,
                _ => {}
            }
            self.next();
        }
        let formula = formula::parse(self.text, from, self.position())?;
        let mut unknown = Ok(());
        formula.columns(&mut |field| {
            if unknown.is_ok() {
                unknown = self.check_column(field, from);
            }
        });
        unknown?;
        self.add_column(&name);
        Ok(StepWork::Let(name, formula))
    }

    /// Adds a column to rows that are not records.
    fn add_column(&mut self, name: &str) {
        if let Some(columns) = &mut self.columns {
            columns.retain(|column| column.name != name);
            columns.push(RowColumn { name: name.to_owned(), kind: ColumnKind::Other });
        }
    }

    fn parse_stage(&mut self) -> Result<StepWork, QueryError> {
        let form = "write | parse FIELD /text (?<name>\\w+)/";
        let field = self.column(&format!("expected a field: {form}"))?;
        let source = match self.tokens.first().map(|token| token.kind) {
            Some(TokenKind::Regex(source) | TokenKind::Quoted(source)) => source.to_owned(),
            _ => return Err(self.error(format!("expected a regular expression: {form}"))),
        };
        self.patterns += 1;
        if self.patterns > parser::MAX_PATTERNS {
            return Err(self.error(format!("more than {} regular expressions", parser::MAX_PATTERNS)));
        }
        let pattern =
            Pattern::new(&source).map_err(|error| self.error(format!("invalid regular expression: {error}")))?;
        let names: Vec<_> = pattern.group_names().map(str::to_owned).collect();
        if names.is_empty() {
            return Err(self.error(format!("this expression has no named groups: {form}")));
        }
        self.next();
        for name in names {
            self.add_column(&name);
        }
        Ok(StepWork::Parse(field, pattern))
    }
}

/// The column of a function without `as`.
pub fn default_name(function: &AggregateFunction) -> String {
    match (function, function.field()) {
        (AggregateFunction::Share(condition), _) => format!("share({condition})"),
        (_, Some(field)) => format!("{}({})", function.name(), field.name()),
        (_, None) => function.name(),
    }
}

/// The share of `p95` or `p99.9` in thousandths.
fn percentile(name: &str) -> Option<u16> {
    let digits = name.strip_prefix('p')?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole, 2) || !is_number(part, 1) {
        return None;
    }
    let thousandths = whole.parse::<u16>().ok()? * 10 + part.parse::<u16>().ok()?;
    (thousandths > 0).then_some(thousandths)
}

/// True if the text names a column without quotes.
pub(super) fn is_plain_column(text: &str) -> bool {
    lexer::is_word(text) && !text.contains(',')
}
