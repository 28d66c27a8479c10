//! Decides when output is coloured.

use std::io::{self, IsTerminal};

use clap::ValueEnum;

use crate::show::{Colour, TextStyle};

/// When to colour output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColourChoice {
    /// Returns the width and the colour of text on stdout.
    pub fn text_style(self) -> TextStyle {
        let colour = self.on(&io::stdout());
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let columns = columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
        TextStyle { colour, columns: columns.unwrap_or(100) }
    }

    /// Returns the colour of messages on stderr. They are coloured only on a terminal.
    pub fn of_messages(self) -> Colour {
        match self {
            Self::Always => Self::Auto.on(&io::stderr()),
            choice => choice.on(&io::stderr()),
        }
    }

    fn on(self, stream: &impl IsTerminal) -> Colour {
        let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match self {
            Self::Always => Colour::On,
            Self::Auto if is_wanted && stream.is_terminal() => Colour::On,
            _ => Colour::Off,
        }
    }
}
