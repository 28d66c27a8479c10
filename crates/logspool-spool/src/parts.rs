//! Payloads longer than a frame are stored as parts, in order. The codec of each frame says which part it holds.

/// Codec of a frame with a whole payload.
const WHOLE: u8 = 1;
/// Codec of the first part.
const BEGIN: u8 = 2;
/// Codec of a part between the first and the last.
const MIDDLE: u8 = 3;
/// Codec of the last part.
const END: u8 = 4;

/// The codec of part `index` of `parts` parts.
pub fn codec(index: usize, parts: usize) -> u8 {
    match (index, index + 1 == parts) {
        (0, true) => WHOLE,
        (0, false) => BEGIN,
        (_, false) => MIDDLE,
        (_, true) => END,
    }
}

/// Whether a frame begins a payload.
pub fn begins(codec: u8) -> bool {
    matches!(codec, WHOLE | BEGIN)
}

/// Joins parts to payloads. A payload with a missing part is skipped.
#[derive(Debug, Default)]
pub struct Joiner {
    begun: Option<Vec<u8>>,
}

impl Joiner {
    /// Adds the next frame; returns the payload that it completes, if any.
    pub fn join(&mut self, codec: u8, part: Vec<u8>) -> Option<Vec<u8>> {
        let begun = self.begun.take();
        match (codec, begun) {
            (WHOLE, _) => return Some(part),
            (BEGIN, _) => self.begun = Some(part),
            (MIDDLE | END, Some(mut begun)) => {
                begun.extend_from_slice(&part);
                if codec == END {
                    return Some(begun);
                }
                self.begun = Some(begun);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_form_a_payload_only_in_order() {
        let mut joiner = Joiner::default();
        let frames =
            [(WHOLE, "a"), (BEGIN, "lost"), (BEGIN, "b"), (MIDDLE, "c"), (END, "d"), (END, "lost"), (WHOLE, "e")];
        let joined = frames.iter().filter_map(|(codec, part)| joiner.join(*codec, part.as_bytes().to_vec()));

        assert_eq!(vec![b"a".to_vec(), b"bcd".to_vec(), b"e".to_vec()], joined.collect::<Vec<_>>());
        assert_eq!([WHOLE, BEGIN, MIDDLE, END], [codec(0, 1), codec(0, 3), codec(1, 3), codec(2, 3)]);
    }
}
