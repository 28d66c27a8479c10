//! The descriptions of formatters of known packages, which `python/logspool/adoption/known` makes.

use logspool_record::format::{
    AssignedValue, DerivedAttribute, FieldRule, NumberRange, NumberTexts, ObjectSpec, Part, Style, StyledSpec,
    TextShape,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::plans::field_texts::{EncoderId, FieldTexts};

/// Reads a `known.Object`: the object, and how the texts of its extra fields are made.
///
/// # Errors
///
/// The error that Python raised, or `ValueError` for an unknown kind of assignment, and if there are too many encoders.
pub fn read_object(answer: &Bound<'_, PyAny>) -> PyResult<(ObjectSpec, FieldTexts)> {
    let get = |name: &str| answer.getattr(name);
    let mut assignments = Vec::new();
    for (key, kind, detail) in get("assignments")?.extract::<Vec<(String, String, Bound<'_, PyAny>)>>()? {
        assignments.push((key, assigned(&kind, &detail)?));
    }
    let spec = ObjectSpec {
        prefix: get("prefix")?.extract()?,
        ascii: get("ascii")?.extract()?,
        compact: get("compact")?.extract()?,
        own_exceptions: get("own_exceptions")?.extract()?,
        assignments,
        hidden: get("hidden")?.extract()?,
        hides_private: get("hides_private")?.extract()?,
        renamed: get("renamed")?.extract()?,
    };
    let encoder = EncoderId::of(&get("encode")?);
    let encoder = encoder.ok_or_else(|| PyValueError::new_err("there are too many encoders"))?;
    Ok((spec, FieldTexts::Encoded(encoder)))
}

fn assigned(kind: &str, detail: &Bound<'_, PyAny>) -> PyResult<AssignedValue> {
    Ok(match kind {
        "attribute" => AssignedValue::Attribute(detail.extract()?),
        "constant" => AssignedValue::Constant(detail.extract()?),
        "exception" => AssignedValue::Exception(TextShape::Whole),
        "exception lines" => AssignedValue::Exception(TextShape::Lines),
        "stack" => AssignedValue::Stack(TextShape::Whole),
        "stack lines" => AssignedValue::Stack(TextShape::Lines),
        "timestamp" => AssignedValue::Timestamp,
        "null if absent" => AssignedValue::NullIfAbsent,
        "extras" => AssignedValue::Extras,
        "nested extras" => AssignedValue::NestedExtras,
        "message items" => AssignedValue::MessageItems,
        "level" => AssignedValue::Level(read_texts(detail)?),
        "open" => AssignedValue::Open,
        "close" => AssignedValue::Close,
        other => return Err(PyValueError::new_err(format!("unknown assignment: {other}"))),
    })
}

/// Reads a `known.Styled`. Style and template are those of the formatting.
///
/// # Errors
///
/// The error that Python raised, or `ValueError` for an unknown kind of attribute.
pub fn read_styled(answer: &Bound<'_, PyAny>, style: Style, template: String) -> PyResult<StyledSpec> {
    let get = |name: &str| answer.getattr(name);
    let mut derived = Vec::new();
    for (name, described) in get("derived")?.extract::<Vec<(String, Bound<'_, PyAny>)>>()? {
        derived.push((name, read_derived(&described)?));
    }
    let limits = get("limits")?.extract::<Vec<(String, bool)>>()?;
    let limit = |is_number| if is_number { FieldRule::Number } else { FieldRule::Absent };
    Ok(StyledSpec {
        style,
        template,
        derived,
        end: get("end")?.extract()?,
        arguments: get("arguments")?.extract()?,
        limits: limits.into_iter().map(|(name, is_number)| (name, limit(is_number))).collect(),
        own_exceptions: get("own_exceptions")?.extract()?,
        marks_records: get("marks_records")?.extract()?,
    })
}

fn read_derived(described: &Bound<'_, PyAny>) -> PyResult<DerivedAttribute> {
    let get = |name: &str| described.getattr(name);
    let kind: String = get("kind")?.extract()?;
    let field = || get("field")?.extract();
    Ok(match kind.as_str() {
        "level" => DerivedAttribute::OfLevel(read_texts(described)?),
        "field" => DerivedAttribute::OfField(field()?, read_texts(described)?),
        "field or time" => DerivedAttribute::FieldOrTime(field()?),
        "message by field" => DerivedAttribute::MessageBy(field()?, read_texts(described)?),
        "escaped message" => DerivedAttribute::EscapedMessage,
        "joined" => {
            let part = |(is_field, text)| if is_field { Part::Field(text) } else { Part::Literal(text) };
            DerivedAttribute::Joined(get("parts")?.extract::<Vec<(bool, String)>>()?.into_iter().map(part).collect())
        }
        other => return Err(PyValueError::new_err(format!("unknown attribute: {other}"))),
    })
}

fn read_texts(described: &Bound<'_, PyAny>) -> PyResult<NumberTexts> {
    let ranges = described.getattr("ranges")?.extract::<Vec<(i64, i64, String, Option<String>)>>()?;
    let range = |(low, high, before, after)| NumberRange { low, high, before, after };
    Ok(NumberTexts { listed: described.getattr("listed")?.extract()?, ranges: ranges.into_iter().map(range).collect() })
}
