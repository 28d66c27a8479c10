//! Paths to values inside other values, as `request.headers.agent` and `items[*].sku`.
//!
//! A name is first a key of the record. If the record has no such key, the name is a path. Paths work as in PostgreSQL:
//! a key of a list is that key of each of its items, and a single value is a list of one item.

use crate::value::Value;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep<'n> {
    Key(&'n str),
    Index(usize),
    /// All items of a list.
    Items,
}

/// The steps of a name. `None`: it can only be a key.
fn steps(name: &str) -> Option<Vec<PathStep<'_>>> {
    if !name.contains(['.', '[']) {
        return None;
    }
    let mut steps = Vec::new();
    for part in name.split('.') {
        let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if key.is_empty() {
            return None;
        }
        steps.push(PathStep::Key(key));
        while !rest.is_empty() {
            let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(if inner == "*" { PathStep::Items } else { PathStep::Index(inner.parse().ok()?) });
            rest = after;
        }
    }
    Some(steps)
}

/// True if the name can be a path.
pub fn is_path(name: &str) -> bool {
    steps(name).is_some()
}

/// True if the name can be a path with several values.
pub fn has_several(name: &str) -> bool {
    is_path(name) && name.contains("[*]")
}

/// The name of the first key of a path.
pub fn first_key(name: &str) -> &str {
    &name[..name.find(['.', '[']).unwrap_or(name.len())]
}

/// The values of a name. `get` returns the value of a key.
pub fn values<'v, 'a>(name: &str, get: impl Fn(&str) -> Option<&'v Value<'a>>) -> Vec<&'v Value<'a>> {
    if let Some(value) = get(name) {
        return vec![value];
    }
    let Some(steps) = steps(name) else { return Vec::new() };
    let Some((PathStep::Key(first), rest)) = steps.split_first() else { return Vec::new() };
    let mut found: Vec<_> = get(first).into_iter().collect();
    for step in rest {
        found = found.into_iter().flat_map(|value| follow(value, step)).collect();
    }
    found
}

fn follow<'v, 'a>(value: &'v Value<'a>, step: &PathStep<'_>) -> Vec<&'v Value<'a>> {
    let member = |value: &'v Value<'a>, wanted: &str| match value {
        Value::Map(pairs) => pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value),
        _ => None,
    };
    match (step, value) {
        (PathStep::Key(key), Value::List(items)) => items.iter().filter_map(|item| member(item, key)).collect(),
        (PathStep::Key(key), value) => member(value, key).into_iter().collect(),
        (PathStep::Items, Value::List(items)) => items.iter().collect(),
        (PathStep::Items, value) => vec![value],
        (PathStep::Index(at), Value::List(items)) => items.get(*at).into_iter().collect(),
        (PathStep::Index(at), value) => {
            if *at == 0 {
                vec![value]
            } else {
                Vec::new()
            }
        }
    }
}

/// The path in the language of PostgreSQL. `None`: the name can only be a key.
pub(super) fn json_path(name: &str) -> Option<String> {
    let mut path = "$".to_owned();
    for step in steps(name)? {
        path += &match step {
            PathStep::Key(key) => format!(".{}", serde_json::Value::from(key)),
            PathStep::Index(at) => format!("[{at}]"),
            PathStep::Items => "[*]".to_owned(),
        };
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, json: &str) -> String {
        let Ok(Value::Map(fields)) = serde_json::from_str(json) else { panic!("an object") };
        let get = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        serde_json::to_string(&values(name, get)).unwrap()
    }

    #[test]
    fn a_name_is_a_key_or_else_a_path() {
        for (expected, name, json) in [
            ("[1]", "a.b", r#"{"a.b":1,"a":{"b":2}}"#),
            ("[2]", "a.b", r#"{"a":{"b":2}}"#),
            ("[]", "a.b", r#"{"a":2}"#),
            ("[null]", "a.b", r#"{"a":{"b":null}}"#),
            ("[1,2]", "a[*].b", r#"{"a":[{"b":1},{"c":0},{"b":2}]}"#),
            ("[1,2]", "a.b", r#"{"a":[{"b":1},{"b":2}]}"#),
            ("[2]", "a[1].b", r#"{"a":[{"b":1},{"b":2}]}"#),
            ("[1]", "a[0]", r#"{"a":1}"#),
            ("[[1,2],3]", "a[*]", r#"{"a":[[1,2],3]}"#),
            ("[]", "a[5]", r#"{"a":[1]}"#),
        ] {
            assert_eq!(expected, found(name, json), "{name} {json}");
        }
        assert_eq!(Some(r#"$."a"[*]."b c"[0]"#.to_owned()), json_path("a[*].b c[0]"));
        for key in ["a", "a.", ".a", "a..b", "a[", "a[x]", "a]", "[0]"] {
            assert!(!is_path(key), "{key}");
        }
    }
}
