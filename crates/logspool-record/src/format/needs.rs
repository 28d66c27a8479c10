//! The parts of a record that a format shows, so that capture sends no others.
//!
//! Stop on the line: answered by *format*, asked by *capture*.

/// One part of a record that costs capture time and that only some formats show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
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
    /// Lists, tuples and dicts among the extra fields with their items; other formats show their text.
    Containers = 128,
}

/// The needs of one format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    set: u8,
    fields: Vec<String>,
}

impl Needs {
    /// Whether the format shows `need`.
    #[inline]
    pub const fn contains(&self, need: Need) -> bool {
        self.set & need as u8 != 0
    }

    /// Extra fields that the format names, each once.
    ///
    /// Without one of them a text format raises `KeyError` in Python, so such a record takes another path. A JSON
    /// format leaves a missing field out.
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
        self.set |= need as u8;
    }

    pub(super) fn insert_field(&mut self, name: &str) {
        if !self.fields.iter().any(|known| known == name) {
            self.fields.push(name.to_owned());
        }
    }
}
