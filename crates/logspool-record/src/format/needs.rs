//! The parts of a record that a format shows, so that capture sends only these.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). A format lists its needs when it is compiled, and capture
//! reads the list.

/// One part of a record that costs capture time and that only some formats show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Need {
    /// File, line and function of the call.
    Site = 1,
    /// `threading.get_ident()`.
    ThreadId = 2,
    /// Name of the thread.
    ThreadName = 4,
    /// Name of the process.
    ProcessName = 8,
    /// Name of the asyncio task.
    TaskName = 16,
    /// Time of the call.
    Time = 32,
    /// Every extra field of the record.
    AllFields = 64,
    /// The items of lists, tuples and dicts among the extra fields. Formats without this need show such a field as its
    /// text.
    Containers = 128,
    /// Whether the message is a dict, which the format shows in another way than as text or as
    /// [`Need::MessageItems`]. Such a record does not take the native path.
    MessageKind = 256,
    /// Whether the record has an exception or a stack, whose text the formatter makes in its own way. Such a record
    /// does not take the native path.
    OwnExceptions = 512,
    /// Whether code sees the finished record after the formatter, which leaves other attributes on it than
    /// `logging.Formatter` does.
    LastStop = 1024,
    /// Whether other formatters may show what the formatter leaves on the record.
    Marks = 2048,
    /// The items of a message that is a dict, in place of its text.
    MessageItems = 4096,
}

/// The needs of one format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    set: u16,
    fields: Vec<String>,
}

impl Needs {
    /// Whether the format shows `need`.
    #[inline]
    pub const fn contains(&self, need: Need) -> bool {
        self.set & need as u16 != 0
    }

    /// Names of the extra fields that the format shows, each once.
    ///
    /// If a record lacks such a field, a text format raises `KeyError` in Python. So capture does not use the native
    /// path for the record. A JSON format omits the missing field.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Adds the needs of another format.
    pub fn merge(&mut self, other: &Needs) {
        self.set |= other.set;
        for name in &other.fields {
            self.insert_field(name);
        }
    }

    pub(super) fn insert(&mut self, need: Need) {
        self.set |= need as u16;
    }

    pub(super) fn insert_field(&mut self, name: &str) {
        if !self.fields.iter().any(|known| known == name) {
            self.fields.push(name.to_owned());
        }
    }
}
