//! Writes the rows of an answer in one of the formats.

use std::io::{self, Write};

use super::look::{Format, Look};
use super::{csv, ndjson, text};
use crate::query::{Field, Stage};
use crate::stores::Found;

/// Writes the rows of one answer.
pub struct Output<W> {
    to: W,
    shape: Shape,
    field: Field,
    /// The current row, written in one piece.
    line: String,
}

enum Shape {
    Text(text::Text),
    Ndjson,
    Csv,
}

impl<W: Write> Output<W> {
    /// For the answer to a query with this stage.
    pub fn new(to: W, format: Format, stage: Option<&Stage>, look: Look) -> Self {
        let shape = match format {
            Format::Text => Shape::Text(text::Text::new(look)),
            Format::Ndjson => Shape::Ndjson,
            Format::Csv => Shape::Csv,
        };
        let field = match stage {
            Some(Stage::CountBy(field)) => field.clone(),
            _ => Field::Message,
        };
        let mut output = Self { to, shape, field, line: String::new() };
        if format == Format::Csv {
            csv::header(stage, &mut output.line);
        }
        output
    }

    /// Writes a row. The bars of a histogram are kept until [`Output::finish`].
    ///
    /// # Errors
    ///
    /// The writer failed.
    pub fn row(&mut self, row: &Found<'_>) -> io::Result<()> {
        match &mut self.shape {
            Shape::Text(text) => text.row(row, &self.field, &mut self.line),
            Shape::Ndjson => ndjson::row(row, &self.field, &mut self.line)?,
            Shape::Csv => csv::row(row, &mut self.line),
        }
        self.write()
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut W {
        &mut self.to
    }

    /// Writes the remaining output and flushes the writer.
    ///
    /// # Errors
    ///
    /// The writer failed.
    pub fn finish(mut self) -> io::Result<W> {
        if let Shape::Text(text) = &mut self.shape {
            text.finish(&mut self.line);
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
