//! Writes the rows of an answer in one of the formats.

use std::io::{self, Write};

use super::record_table::RecordTable;
use super::style::{Format, TextStyle};
use super::{csv, ndjson, text};
use crate::query::{Field, Pipeline, RowColumn, Stage};
use crate::stores::AnswerRow;

/// Writes the rows of one answer.
pub struct Output<W> {
    to: W,
    shape: RowWriter,
    field: Field,
    /// The kinds of the columns, if the rows are not records.
    columns: Vec<RowColumn>,
    /// The text of the current row, which is written to `to` in one call.
    line: String,
}

enum RowWriter {
    Text(text::TextWriter),
    Ndjson,
    Csv,
    /// CSV with a column for each field of the records.
    RecordTable(RecordTable),
}

impl<W: Write> Output<W> {
    /// Creates the output for the answer to a query with this stage.
    pub fn new(to: W, format: Format, stage: Option<&Stage>, look: TextStyle) -> Self {
        let shape = match format {
            Format::Text => RowWriter::Text(text::TextWriter::new(look)),
            Format::Ndjson => RowWriter::Ndjson,
            Format::Csv => RowWriter::Csv,
        };
        let field = match stage {
            Some(Stage::CountBy(field)) => field.clone(),
            _ => Field::Message,
        };
        let mut output = Self { to, shape, field, columns: Vec::new(), line: String::new() };
        if format == Format::Csv {
            csv::header(stage, &mut output.line);
        }
        output
    }

    /// Sets the columns of rows that the steps of a query make. In CSV, records have a column for each field; the first
    /// thousand records are kept until their fields are known.
    #[must_use]
    pub fn with_columns(mut self, pipeline: &Pipeline) -> Self {
        if let (RowWriter::Csv, None) = (&self.shape, &pipeline.columns) {
            self.line.clear();
            self.shape = RowWriter::RecordTable(RecordTable::default());
        }
        let Some(columns) = pipeline.columns.as_ref().filter(|_| !pipeline.steps.is_empty()) else { return self };
        self.columns.clone_from(columns);
        if let RowWriter::Csv = self.shape {
            self.line.clear();
            csv::columns(columns, &mut self.line);
        }
        self
    }

    /// Writes a row. In text format, the intervals of a histogram are kept until [`Output::finish`] draws them.
    ///
    /// # Errors
    ///
    /// The writer failed.
    pub fn row(&mut self, row: &AnswerRow<'_>) -> io::Result<()> {
        match &mut self.shape {
            RowWriter::Text(text) => text.row(row, &self.field, &self.columns, &mut self.line),
            RowWriter::Ndjson => ndjson::row(row, &self.field, &self.columns, &mut self.line)?,
            RowWriter::Csv => csv::row(row, &self.columns, &mut self.line),
            RowWriter::RecordTable(table) => {
                if let AnswerRow::Record(record) = row {
                    table.row(record, &mut self.line);
                }
            }
        }
        self.write()
    }

    /// Returns the writer that the rows are written to.
    pub fn writer(&mut self) -> &mut W {
        &mut self.to
    }

    /// Writes the remaining output and flushes the writer.
    ///
    /// # Errors
    ///
    /// The writer failed.
    pub fn finish(mut self) -> io::Result<W> {
        match &mut self.shape {
            RowWriter::Text(text) => text.finish(&mut self.line),
            RowWriter::RecordTable(table) => table.finish(&mut self.line),
            RowWriter::Ndjson | RowWriter::Csv => {}
        }
        self.write()?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.to.write_all(self.line.as_bytes());
        self.line.clear();
        written
    }
}
