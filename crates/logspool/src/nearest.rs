//! Finds the known word that is nearest to a misspelt one, for error messages.

/// Returns the word of `known` that needs the fewest changes to become `word`, ignoring case. Returns `None` if even
/// the nearest word needs changes in half the letters of the longer of the two words, or in more.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded: Vec<char> = word.to_lowercase().chars().collect();
    let with_distance = known.into_iter().filter_map(|each| {
        let other: Vec<char> = each.to_lowercase().chars().collect();
        let changes = edit_distance(&folded, &other);
        (2 * changes < folded.len().max(other.len())).then_some((changes, each))
    });
    with_distance.min_by_key(|(changes, _)| *changes).map(|(_, each)| each)
}

/// Number of letters to insert, remove, replace or swap with their neighbour to turn `one` into `other`
/// (Damerau-Levenshtein distance).
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (index, row) in rows.iter_mut().enumerate() {
        row[0] = index;
    }
    rows[0] = (0..=other.len()).collect();
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_an_unrelated_word_finds_none() {
        let known = ["file", "rotating", "service", "syslog"];

        for (word, expected) in [
            ("syslgo", Some("syslog")),
            ("SysLog", Some("syslog")),
            ("rotate", Some("rotating")),
            ("fil", Some("file")),
            ("servce", Some("service")),
            ("Service", Some("service")),
            ("kafka", None),
            ("", None),
        ] {
            assert_eq!(expected, nearest(word, known), "{word}");
        }
    }
}
