//! Groups of records, as Fluent Bit sends them: an entry before the records has values about all of them.

use std::borrow::Cow;

use crate::record::Record;
use crate::value::Value;

/// Values that Fluent Bit sends once for all records of a group: the resource and the scope of OpenTelemetry.
#[derive(Debug, Clone)]
pub struct Group {
    fields: Vec<(Cow<'static, str>, Value<'static>)>,
    scope: Option<String>,
}

impl Group {
    /// Maximum size of the values of a group as JSON. They are stored once for each record.
    ///
    /// Chosen: a resource has some 500 bytes.
    const MAX_BYTES: usize = 16 * 1024;

    /// The group that an entry begins; `None` if its values have too many bytes.
    pub fn of(entry: &Record<'_>) -> Option<Self> {
        if entry.fields_as_json().len() > Self::MAX_BYTES {
            return None;
        }
        let (mut fields, mut scope) = (Vec::new(), None);
        for (name, value) in entry.clone().into_owned().fields {
            match (&*name, value) {
                ("resource", Value::Map(pairs)) => {
                    for (name, value) in pairs {
                        match (&*name, value) {
                            ("attributes", Value::Map(attributes)) => fields.extend(attributes),
                            (_, value) => fields.push((name, value)),
                        }
                    }
                }
                ("scope", Value::Map(pairs)) => {
                    for (name, value) in pairs {
                        match (&*name, value) {
                            ("name", Value::Text(text)) => scope = Some(text.into_owned()),
                            (_, value) => fields.push((Cow::Owned(format!("scope.{name}")), value)),
                        }
                    }
                }
                (_, value) => fields.push((name, value)),
            }
        }
        Some(Self { fields, scope })
    }

    /// Adds the values of the group to one of its records.
    pub fn add_to<'a>(&'a self, record: &mut Record<'a>) {
        for (name, value) in &self.fields {
            match (&**name, value) {
                ("host.name", Value::Text(host)) if record.host.is_none() => record.host = Some(Cow::Borrowed(host)),
                _ => record.fields.push((Cow::Borrowed(name), value.clone())),
            }
        }
        let scope = self.scope.as_deref().filter(|scope| !scope.is_empty());
        record.fields.extend(scope.map(|scope| (Cow::Borrowed("scope"), Value::text(scope))));
    }
}
