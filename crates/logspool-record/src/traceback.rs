//! Puts the texts of an exception, its causes and its groups together, as CPython's `TracebackException.format` does.

/// Texts between two exceptions.
#[derive(Debug, Clone)]
pub struct OriginMessages {
    /// The text between an exception and the one that it caused.
    pub cause: String,
    /// The text between an exception and one that was raised while it was handled.
    pub context: String,
}

/// Why an exception is shown before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceptionOrigin {
    /// It is the cause of the other one.
    Cause,
    /// The other one was raised while it was handled.
    Context,
}

/// The texts of one exception. The others are named by their index among all exceptions that are shown.
#[derive(Debug, Default)]
pub struct ExceptionPart {
    /// The frames; empty if there are none.
    pub frames: Vec<u8>,
    /// The lines after the frames; valid UTF-8.
    pub final_lines: Vec<u8>,
    /// The exception that is shown before this one.
    pub earlier: Option<(usize, ExceptionOrigin)>,
    /// The exceptions of a group; `None` for an exception that is no group.
    pub members: Option<Vec<usize>>,
}

/// Number of exceptions of a group that are shown: `max_group_width`.
const MAX_WIDTH: usize = 15;

/// Number of groups inside each other that are shown: `max_group_depth`.
const MAX_DEPTH: usize = 10;

/// Makes the text of the first of these exceptions, with the newline at its end.
///
/// # Panics
///
/// An exception names the index of another one that does not exist.
pub fn text(messages: &OriginMessages, exceptions: &[ExceptionPart]) -> Vec<u8> {
    let mut layout = TextLayout { messages, exceptions, depth: 0, need_close: false, to: Vec::new() };
    layout.add(0);
    layout.to
}

struct TextLayout<'a> {
    messages: &'a OriginMessages,
    exceptions: &'a [ExceptionPart],
    /// Number of groups around the exception that is added.
    depth: usize,
    /// True if the group that is added still needs its closing line.
    need_close: bool,
    to: Vec<u8>,
}

impl TextLayout<'_> {
    /// Adds an exception after all that are shown before it.
    fn add(&mut self, index: usize) {
        let exceptions = self.exceptions;
        let mut chain = vec![(index, None)];
        while let Some((last, _)) = chain.last()
            && let Some((earlier, origin)) = exceptions[*last].earlier
        {
            chain.last_mut().expect("not empty").1 = Some(origin);
            chain.push((earlier, None));
        }
        for (index, origin) in chain.into_iter().rev() {
            match origin {
                Some(ExceptionOrigin::Cause) => self.emit(self.messages.cause.as_bytes(), '|'),
                Some(ExceptionOrigin::Context) => self.emit(self.messages.context.as_bytes(), '|'),
                None => {}
            }
            let shown = &exceptions[index];
            match &shown.members {
                None => {
                    if !shown.frames.is_empty() {
                        self.emit(b"Traceback (most recent call last):\n", '|');
                        self.emit(&shown.frames, '|');
                    }
                    self.emit(&shown.final_lines, '|');
                }
                Some(_) if self.depth > MAX_DEPTH => {
                    self.emit(format!("... (max_group_depth is {MAX_DEPTH})\n").as_bytes(), '|');
                }
                Some(members) => self.add_group(shown, members),
            }
        }
    }

    fn add_group(&mut self, shown: &ExceptionPart, members: &[usize]) {
        let is_outermost = self.depth == 0;
        if is_outermost {
            self.depth = 1;
        }
        if !shown.frames.is_empty() {
            let margin = if is_outermost { '+' } else { '|' };
            self.emit(b"Exception Group Traceback (most recent call last):\n", margin);
            self.emit(&shown.frames, '|');
        }
        self.emit(&shown.final_lines, '|');
        let count = members.len().min(MAX_WIDTH + 1);
        self.need_close = false;
        for (place, member) in members[..count].iter().enumerate() {
            let is_last = place + 1 == count;
            if is_last {
                // A group inside this one may add the closing line.
                self.need_close = true;
            }
            let is_shown = place < MAX_WIDTH;
            let title = if is_shown { (place + 1).to_string() } else { "...".to_owned() };
            let corner = if place == 0 { "+-" } else { "  " };
            self.line(&format!("{corner}+---------------- {title} ----------------\n"));
            self.depth += 1;
            if is_shown {
                self.add(*member);
            } else {
                let rest = members.len() - MAX_WIDTH;
                let plural = if rest > 1 { "s" } else { "" };
                self.emit(format!("and {rest} more exception{plural}\n").as_bytes(), '|');
            }
            if is_last && self.need_close {
                self.line("+------------------------------------\n");
                self.need_close = false;
            }
            self.depth -= 1;
        }
        if is_outermost {
            self.depth = 0;
        }
    }

    /// Adds a line with the indentation of the current depth.
    fn line(&mut self, line: &str) {
        self.to.extend(std::iter::repeat_n(b' ', 2 * self.depth));
        self.to.extend_from_slice(line.as_bytes());
    }

    /// Adds text. Inside a group, each line begins with the indentation and a margin.
    fn emit(&mut self, text: &[u8], margin: char) {
        if self.depth == 0 {
            self.to.extend_from_slice(text);
            return;
        }
        let mut prefix = vec![b' '; 2 * self.depth];
        prefix.extend_from_slice(&[margin as u8, b' ']);
        let mut rest = text;
        while !rest.is_empty() {
            let (line, following) = rest.split_at(line_length(rest));
            self.to.extend_from_slice(&prefix);
            self.to.extend_from_slice(line);
            rest = following;
        }
    }
}

/// The number of bytes of the first line with its line break. The breaks are those of `str.splitlines`.
fn line_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let rest = &text[at + 1..];
        let length = match byte {
            b'\r' if rest.first() == Some(&b'\n') => 2,
            b'\n' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1e => 1,
            // U+0085
            0xc2 if rest.first() == Some(&0x85) => 2,
            // U+2028 and U+2029
            0xe2 if matches!(rest, [0x80, 0xa8 | 0xa9, ..]) => 3,
            _ => {
                at += 1;
                continue;
            }
        };
        return at + length;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> OriginMessages {
        OriginMessages { cause: "\ncause\n\n".to_owned(), context: "\ncontext\n\n".to_owned() }
    }

    fn shown(name: &str) -> ExceptionPart {
        let frames = format!("  frame of {name}\n").into_bytes();
        ExceptionPart { frames, final_lines: format!("{name}\n").into_bytes(), ..ExceptionPart::default() }
    }

    fn made(exceptions: &[ExceptionPart]) -> String {
        String::from_utf8(text(&messages(), exceptions)).unwrap()
    }

    #[test]
    fn earlier_exceptions_are_shown_first() {
        let last = ExceptionPart { earlier: Some((1, ExceptionOrigin::Context)), ..shown("last") };
        let middle = ExceptionPart { earlier: Some((2, ExceptionOrigin::Cause)), ..shown("middle") };
        let first = ExceptionPart { frames: Vec::new(), ..shown("first") };

        let title = "Traceback (most recent call last):\n";
        assert_eq!(
            made(&[last, middle, first]),
            format!("first\n\ncause\n\n{title}  frame of middle\nmiddle\n\ncontext\n\n{title}  frame of last\nlast\n")
        );
    }

    #[test]
    fn a_group_is_drawn_with_its_members() {
        let outer = ExceptionPart { members: Some(vec![1, 2]), ..shown("outer") };
        let inner = ExceptionPart { members: Some(vec![3]), frames: Vec::new(), ..shown("inner") };

        let expected = "  + Exception Group Traceback (most recent call last):
  |   frame of outer
  | outer
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   frame of one
    | one
    +---------------- 2 ----------------
    | inner
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   frame of two
      | two
      +------------------------------------
";
        assert_eq!(made(&[outer, shown("one"), inner, shown("two")]), expected);
    }

    #[test]
    fn wide_and_deep_groups_are_cut() {
        let members = |members| Some(members);
        let wide = ExceptionPart { members: members(vec![1; 17]), ..shown("wide") };
        let text = made(&[wide, shown("one")]);
        assert!(text.ends_with("    +---------------- ... ----------------\n    | and 2 more exceptions\n    +------------------------------------\n"));

        let deep: Vec<_> = (1..=12)
            .map(|inner| ExceptionPart { members: members(vec![inner]), ..shown("deep") })
            .chain([shown("end")])
            .collect();
        assert!(made(&deep).contains("| ... (max_group_depth is 10)\n"));
    }

    #[test]
    fn lines_end_where_splitlines_ends_them() {
        let text = "a\nb\r\nc\rd\u{b}e\u{c}f\u{1c}g\u{1d}h\u{1e}i\u{85}j\u{2028}k\u{2029}é\u{2027}\u{86}l";
        let mut rest = text.as_bytes();
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            lengths.push(line_length(rest));
            rest = &rest[line_length(rest)..];
        }
        assert_eq!(lengths, [2, 3, 2, 2, 2, 2, 2, 2, 3, 4, 4, 8]);
    }
}
