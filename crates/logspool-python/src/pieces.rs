//! The values of one record on their way into a lane: collected first, written in one go.
//!
//! Stop on the line: *capture* into *queue*. Whatever may run foreign code happens while pieces are added;
//! writing them is plain copying, inside the lane's window.

use logspool_record::tag;

use crate::object::Owned;

/// One value or part of one.
#[derive(Clone, Copy)]
enum Piece {
    /// A tag alone.
    Tag(u8),
    /// A tag and eight bytes.
    Word(u8, u64),
    /// A tag, a `u32` length and bytes.
    Bytes(u8, *const u8, u32),
    /// Bytes as they are.
    Raw(*const u8, u32),
}

/// Pieces that fit without the heap.
///
/// Chosen: a call with ten arguments and full context has fewer.
const INLINE: usize = 20;

/// The values of one record. What they point to outlives it: the call's arguments, or `owned`.
pub struct Pieces {
    count: usize,
    bytes: usize,
    inline: [std::mem::MaybeUninit<Piece>; INLINE],
    spill: Vec<Piece>,
    owned: Vec<Owned>,
    texts: Vec<Box<[u8]>>,
}

impl Pieces {
    /// No values.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            count: 0,
            bytes: 0,
            inline: [const { std::mem::MaybeUninit::uninit() }; INLINE],
            spill: Vec::new(),
            owned: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Bytes that [`Pieces::write`] writes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn add(&mut self, piece: Piece, bytes: usize) {
        if self.count < INLINE {
            self.inline[self.count].write(piece);
        } else {
            self.spill.push(piece);
        }
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds `None`, `True` or `False`.
    #[inline(always)]
    pub fn tag(&mut self, tag: u8) {
        self.add(Piece::Tag(tag), 1);
    }

    /// Adds an integer, a double (its bits) or a context entry with an integer.
    #[inline(always)]
    pub fn word(&mut self, tag: u8, word: u64) {
        self.add(Piece::Word(tag, word), 9);
    }

    /// Adds text or bytes that live until the record is written. `false`: longer than a record can hold.
    #[inline(always)]
    pub fn bytes(&mut self, tag: u8, bytes: &[u8]) -> bool {
        let Ok(len) = u32::try_from(bytes.len()) else { return false };
        self.add(Piece::Bytes(tag, bytes.as_ptr(), len), 5 + bytes.len());
        true
    }

    /// Adds bytes as they are; they live until the record is written.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.add(Piece::Raw(bytes.as_ptr(), bytes.len() as u32), bytes.len());
    }

    /// Adds an extra field's key; its value is added next.
    pub fn field(&mut self, key: &[u8]) -> bool {
        self.bytes(tag::FIELD, key)
    }

    /// Keeps an object alive until the record is written.
    pub fn keep(&mut self, object: Owned) {
        self.owned.push(object);
    }

    /// Keeps text alive until the record is written, and returns it for adding.
    pub fn keep_text(&mut self, text: Vec<u8>) -> &'static [u8] {
        let text = text.into_boxed_slice();
        // SAFETY: the box is neither moved out of `texts` nor changed before `self` is dropped, and the slice is
        // only put into pieces of `self`.
        let slice = unsafe { std::slice::from_raw_parts(text.as_ptr(), text.len()) };
        self.texts.push(text);
        slice
    }

    /// All values, one behind the other.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes);
        // SAFETY: room for `len` bytes, and `write` writes exactly these.
        unsafe {
            self.write(bytes.as_mut_ptr());
            bytes.set_len(self.bytes);
        }
        bytes
    }

    /// Writes all values at `to`.
    ///
    /// # Safety
    ///
    /// [`Pieces::len`] bytes from `to` on are writable.
    #[inline(always)]
    pub unsafe fn write(&self, mut to: *mut u8) {
        let inline = self.count.min(INLINE);
        for piece in &self.inline[..inline] {
            // SAFETY: the first `count` pieces were written by `add`; room as the caller says.
            to = unsafe { put(piece.assume_init_ref(), to) };
        }
        for piece in &self.spill {
            // SAFETY: as above.
            to = unsafe { put(piece, to) };
        }
    }
}

#[inline(always)]
unsafe fn put(piece: &Piece, to: *mut u8) -> *mut u8 {
    // SAFETY: the caller has counted the same bytes in `Pieces::bytes`; sources outlive the pieces.
    unsafe {
        match *piece {
            Piece::Tag(tag) => {
                to.write(tag);
                to.add(1)
            }
            Piece::Word(tag, word) => {
                to.write(tag);
                to.add(1).cast::<u64>().write_unaligned(word);
                to.add(9)
            }
            Piece::Bytes(tag, bytes, len) => {
                to.write(tag);
                to.add(1).cast::<u32>().write_unaligned(len);
                std::ptr::copy_nonoverlapping(bytes, to.add(5), len as usize);
                to.add(5 + len as usize)
            }
            Piece::Raw(bytes, len) => {
                std::ptr::copy_nonoverlapping(bytes, to, len as usize);
                to.add(len as usize)
            }
        }
    }
}
