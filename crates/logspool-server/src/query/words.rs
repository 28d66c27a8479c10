//! Splits a message into words, to compare them with a phrase.

use super::Phrase;

/// The words of a text, with their case unchanged. A word is a sequence of letters and digits.
pub fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// A word in lower case. The lower case of `İ` is a letter and a combining mark. The mark is dropped, because it is not
/// a letter and would end the word.
fn lower(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_lowercase).filter(|character| character.is_alphanumeric())
}

/// True for a word of a script that writes no spaces between words: Han, Hiragana, Katakana, Thai, Lao, Khmer or Burmese.
/// Such a word is found also inside a longer one.
pub fn is_part(word: &str) -> bool {
    word.chars().any(|character| {
        matches!(character,
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
    })
}

impl Phrase {
    /// The words of a text. A `*` at its end makes the last word the begin of a word. `None`: the text has no words.
    pub fn new(text: &str) -> Option<Self> {
        let words: Vec<String> = words(text).map(|word| lower(word).collect()).collect();
        let is_prefix = text.ends_with('*');
        (!words.is_empty()).then_some(Self { words, is_prefix })
    }

    /// True if the text contains the words of the phrase one after the other.
    pub fn is_in(&self, text: &str) -> bool {
        let mut rest = words(text);
        loop {
            let mut found = rest.clone();
            let last = self.words.len() - 1;
            let is_same = |(at, wanted): (usize, &String)| {
                let matches = if self.is_prefix && at == last { begins } else { same };
                found.next().is_some_and(|word| matches(word, wanted))
            };
            if self.words.iter().enumerate().all(is_same) {
                return true;
            }
            if rest.next().is_none() {
                return false;
            }
        }
    }
}

/// True if a word in lower case equals `wanted`, or contains it if [`is_part`]. `wanted` must be in lower case.
fn same(word: &str, wanted: &str) -> bool {
    if is_part(wanted) {
        return lower(word).collect::<String>().contains(wanted);
    }
    if word.is_ascii() { word.eq_ignore_ascii_case(wanted) } else { lower(word).eq(wanted.chars()) }
}

/// True if a word begins with `wanted`, which must be in lower case.
fn begins(word: &str, wanted: &str) -> bool {
    is_part(wanted) && same(word, wanted) || lower(word).collect::<String>().starts_with(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(phrase: &str, text: &str) -> bool {
        Phrase::new(phrase).unwrap().is_in(text)
    }

    #[test]
    fn a_phrase_is_found_by_whole_words_in_a_row() {
        for (phrase, text) in [
            ("disk", "Disk full"),
            ("disk full", "the disk, FULL."),
            ("a b", "a a b"),
            ("10.0.0.1", "from 10.0.0.1:443"),
            ("größe", "GRÖSSE GRÖßE"),
            ("ΣΑΣ", "σασ"),
            ("istanbul", "İSTANBUL"),
            ("don't", "Don't panic"),
            ("商品", "商品を追加しました"),
            ("追加", "商品を追加しました"),
            ("order 追加 ok", "Order: 商品を追加しました, OK"),
            ("reconn*", "Reconnecting"),
            ("out of mem*", "out of MEMORY now"),
            ("mem*", "mem"),
        ] {
            assert!(is_in(phrase, text), "{phrase} in {text}");
        }
        for (phrase, text) in [
            ("disk", "disks"),
            ("disk full", "disk is full"),
            ("full disk", "disk full"),
            ("a b", "a"),
            ("a", ""),
            ("grosse", "größe"),
            ("reconn*", "disreconnect"),
            ("out of mem*", "out of"),
            ("商店", "商品を追加しました"),
            ("追加 ok", "商品を追加しました, not ok"),
        ] {
            assert!(!is_in(phrase, text), "{phrase} in {text}");
        }
    }

    #[test]
    fn text_without_letters_and_digits_has_no_words() {
        assert_eq!(None, Phrase::new(""));
        assert_eq!(None, Phrase::new("-- ?! --"));
        assert_eq!(vec!["a", "1"], Phrase::new("(A)-1").unwrap().words);
    }
}
