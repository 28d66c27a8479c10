//! Finds the known name that is nearest to an unknown one.

/// Returns the name that differs least from `given`. `None` if each name differs by more than a third of its letters.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let with_distance = names.map(|name| (distance(&given.to_lowercase(), name), name));
    let (distance, name) = with_distance.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.chars().count().max(3)).then_some(name)
}

/// Number of letters to insert, remove or replace to turn one text into the other (Levenshtein distance).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], line + 1);
        for (column, beside) in other.chars().enumerate() {
            let replaced = before + usize::from(letter != beside);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_near_and_another_word_is_not() {
        let names = ["pickle", "json", "syslog", "syslog-octets", "http"];
        for (expected, given) in [
            (Some("pickle"), "pikle"),
            (Some("syslog"), "Syslog"),
            (Some("syslog-octets"), "syslog_octet"),
            (Some("http"), "htp"),
            (None, "smoke"),
            (None, ""),
        ] {
            assert_eq!(expected, nearest(given, names.into_iter()), "{given}");
        }
    }
}
