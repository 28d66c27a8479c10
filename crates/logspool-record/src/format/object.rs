//! A line that `json.dumps` makes of a dict which a formatter fills: `pythonjsonlogger`.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). [`ObjectSpec`] lists the assignments to the dict. Usually no key is
//! assigned twice; then the members are written one after the other. Only if an extra field or an item of the message has
//! the key of another member, or if a key is assigned only on a condition that depends on another key, the dict is put
//! together first. Extra fields in nested objects are in `nested.rs`.

use super::attribute::Attribute;
use super::attribute_values::AttributeValues;
use super::json_text::{push_lines, push_string, push_value};
use super::line_program::TextPlace;
use super::moment::push_iso_offset;
use super::needs::{Need, Needs};
use super::nested::{Leaf, NestedMembers};
use super::object_members::{Assignment, Held, Source};
use super::object_spec::{AssignedValue, ObjectSpec, TextShape};
use super::program_compiler::ProgramCompiler;
use super::render_state::{RenderError, RenderState};
use super::unsupported::Unsupported;
use super::view::{CompiledSite, ParsedRecord, RecordView};
use crate::cpython::CpythonRules;
use crate::record::Value;

/// A compiled [`ObjectSpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectLayout {
    spec: ObjectSpec,
    /// All assignments, in order.
    assignments: Box<[Assignment]>,
    /// The members of the object, if no extra field has the key of another member. `None` if the members have to be
    /// found for each record.
    members: Option<Box<[Assignment]>>,
    /// The nested objects to which extra fields are added; `None` if the layout has none.
    nested: Option<NestedMembers>,
}

impl ObjectLayout {
    pub(super) fn compile(spec: &ObjectSpec, cpython: CpythonRules) -> Result<Self, Unsupported> {
        let member = |(key, assigned): &(String, AssignedValue)| {
            let source = match assigned {
                AssignedValue::Attribute(name) => Source::Attribute(Attribute::parse(name, cpython)?),
                AssignedValue::Constant(json) => Source::Constant(json.as_bytes().into()),
                AssignedValue::Exception(shape) => Source::Exception(*shape),
                AssignedValue::Stack(shape) => Source::Stack(*shape),
                AssignedValue::Timestamp => Source::Timestamp,
                AssignedValue::NullIfAbsent => Source::NullIfAbsent,
                AssignedValue::Level(texts) => Source::Level(texts.clone()),
                AssignedValue::Open => Source::Open,
                AssignedValue::Close => Source::Close,
                AssignedValue::NestedExtras => Source::NestedExtras,
                AssignedValue::MessageItems => Source::MessageItems,
                AssignedValue::Extras => Source::Extras,
            };
            let mut written_key = Vec::new();
            push_string(&mut written_key, key, spec.ascii);
            written_key.extend_from_slice(if spec.compact { b":" } else { b": " });
            Ok(Assignment { key: key.as_str().into(), written_key: written_key.into(), source })
        };
        let assignments: Box<[Assignment]> = spec.assignments.iter().map(member).collect::<Result<_, _>>()?;
        let is_nested = assignments.iter().any(|member| member.source == Source::Open);
        let members = if is_nested { Some(assignments.clone()) } else { unconditional(&assignments) };
        let nested = NestedMembers::of(&assignments);
        Ok(Self { spec: spec.clone(), assignments, members, nested })
    }

    /// The attributes that the layout shows.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.assignments.iter().filter_map(|member| match &member.source {
            Source::Attribute(attribute) => Some(attribute),
            _ => None,
        })
    }

    /// Adds the needs that do not come from attributes.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        if self.spec.own_exceptions {
            needs.insert(Need::OwnExceptions);
        }
        if self.assignments.iter().any(|member| member.source == Source::MessageItems) {
            needs.insert(Need::MessageItems);
        } else if self.nested.is_none() {
            needs.insert(Need::MessageKind);
        }
        for member in &self.assignments {
            match member.source {
                Source::Timestamp => needs.insert(Need::Time),
                Source::Extras => needs.insert(Need::AllFields),
                Source::NestedExtras => {
                    needs.insert(Need::AllFields);
                    needs.insert(Need::LastStop);
                }
                _ => {}
            }
        }
    }

    pub(super) fn render(
        &self,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        out.extend_from_slice(self.spec.prefix.as_bytes());
        out.push(b'{');
        let mut writer = Writer { layout: self, values, record, state, start: out.len(), result: Ok(()) };
        match (&self.nested, &self.members) {
            (Some(nested), _) if record.fields().next().is_some() => writer.push_nested(nested, out),
            (None, Some(_)) if self.has_clash(record) => writer.push_assembled(out),
            (_, Some(members)) => members.iter().for_each(|member| writer.push_member(member, out)),
            (_, None) => writer.push_assembled(out),
        }
        let result = writer.result;
        out.push(b'}');
        result
    }

    /// Where the texts of an object are.
    pub(super) fn text_place(&self) -> TextPlace {
        if self.spec.ascii { TextPlace::AsciiJson } else { TextPlace::Json }
    }

    /// Adds the pieces of a line without its terminator to a program. Returns false if a member differs between records
    /// of one site, level and logger in a way that programs do not render.
    pub(super) fn add_to_program(
        &self,
        values: &AttributeValues,
        record: &RecordView<'_>,
        state: &mut RenderState,
        program: &mut ProgramCompiler,
    ) -> bool {
        let Some(members) = &self.members else { return false };
        let record_without_fields = ParsedRecord::new(record);
        let mut writer =
            Writer { layout: self, values, record: &record_without_fields, state, start: 0, result: Ok(()) };
        program.constant.extend_from_slice(self.spec.prefix.as_bytes());
        program.constant.push(b'{');
        for member in members {
            let source = &member.source;
            match source {
                Source::Extras | Source::MessageItems | Source::NestedExtras => continue,
                Source::Exception(_) | Source::Stack(_) => continue,
                Source::Close => {
                    program.constant.push(b'}');
                    continue;
                }
                _ => {}
            }
            // Every value ends with a constant, or with a number; only an object begins with a brace.
            writer.separate(&mut program.constant);
            program.constant.extend_from_slice(&member.written_key);
            let is_added = match source {
                Source::Attribute(attribute @ (Attribute::Message | Attribute::AscTime)) => {
                    program.constant.push(b'"');
                    let is_added = *attribute == Attribute::AscTime
                        || program.add_message(record.site.and_then(CompiledSite::template));
                    if *attribute == Attribute::AscTime {
                        program.add_time();
                    }
                    program.constant.push(b'"');
                    is_added
                }
                Source::Attribute(attribute @ (Attribute::Thread | Attribute::ThreadName)) => {
                    program.add_json_thread(attribute)
                }
                Source::Attribute(attribute)
                    if !attribute.is_constant() && !matches!(attribute, Attribute::Field(_)) =>
                {
                    false
                }
                // The fraction of a timestamp is left out if it is zero.
                Source::Timestamp => false,
                source => {
                    writer.push_source(source, &mut program.constant);
                    true
                }
            };
            if !is_added {
                return false;
            }
        }
        program.constant.push(b'}');
        writer.result.is_ok()
    }

    /// The extra fields that are shown, with their keys.
    fn extras<'r, 'a: 'r>(&'r self, record: &'r ParsedRecord<'a>) -> impl Iterator<Item = (&'r str, Value<'r>)> {
        let shown = record.fields().filter(|(name, _)| self.spec.shows_extra(name));
        shown.map(|(name, value)| (self.spec.key_of_extra(name), value))
    }

    /// The items of the message, with their keys.
    fn items<'r, 'a: 'r>(&'r self, record: &'r ParsedRecord<'a>) -> impl Iterator<Item = (&'r str, Value<'r>)> {
        record.items().map(|(name, value)| (self.spec.key_of_extra(name), value))
    }

    /// Whether an extra field or an item has the key of another member, of another item or of another extra field.
    fn has_clash(&self, record: &ParsedRecord<'_>) -> bool {
        let added = || self.items(record).chain(self.extras(record));
        let may_repeat = !self.spec.renamed.is_empty() || record.items().next().is_some();
        let mut seen = 0;
        added().any(|(key, _)| {
            let is_again = may_repeat && added().take(seen).any(|(earlier, _)| earlier == key);
            seen += 1;
            is_again || self.has_member(key)
        })
    }

    fn has_member(&self, key: &str) -> bool {
        let adds = |source: &Source| matches!(source, Source::Extras | Source::MessageItems);
        self.assignments.iter().any(|member| *member.key == *key && !adds(&member.source))
    }
}

/// The members if each key is assigned once, or always. `None` if only the record decides which members there are.
fn unconditional(assignments: &[Assignment]) -> Option<Box<[Assignment]>> {
    let mut members: Vec<Assignment> = Vec::new();
    for member in assignments {
        let is_conditional = matches!(member.source, Source::Exception(_) | Source::Stack(_) | Source::NullIfAbsent);
        let adds = |source: &Source| matches!(source, Source::Extras | Source::MessageItems);
        let is_same = |known: &Assignment| !adds(&member.source) && !adds(&known.source) && known.key == member.key;
        let known = members.iter_mut().find(|known| is_same(known));
        match known {
            Some(_) if member.source == Source::NullIfAbsent => {}
            Some(known) => {
                if is_conditional || matches!(known.source, Source::Exception(_) | Source::Stack(_)) {
                    return None;
                }
                known.source = member.source.clone();
            }
            None if member.source == Source::NullIfAbsent => {
                members.push(Assignment { source: Source::Constant((*b"null").into()), ..member.clone() });
            }
            None => members.push(member.clone()),
        }
    }
    Some(members.into())
}

/// Writes the members of one object.
struct Writer<'w, 'r, 'a> {
    layout: &'w ObjectLayout,
    values: &'w AttributeValues,
    record: &'r ParsedRecord<'a>,
    state: &'w mut RenderState,
    /// Where the first member begins.
    start: usize,
    result: Result<(), RenderError>,
}

impl<'r, 'a: 'r> Writer<'_, 'r, 'a> {
    fn push_member(&mut self, member: &Assignment, out: &mut Vec<u8>) {
        if !self.record.has_room_for(out.len() - self.start) {
            return;
        }
        match &member.source {
            Source::Extras => {
                let (layout, record) = (self.layout, self.record);
                layout.extras(record).for_each(|(key, value)| self.push_added(key, value, out));
            }
            Source::MessageItems => {
                let (layout, record) = (self.layout, self.record);
                layout.items(record).for_each(|(key, value)| self.push_added(key, value, out));
            }
            Source::Close => out.push(b'}'),
            source if self.is_assigned(source) => {
                self.separate(out);
                out.extend_from_slice(&member.written_key);
                self.push_source(source, out);
            }
            _ => {}
        }
    }

    fn push_added(&self, key: &str, value: Value<'_>, out: &mut Vec<u8>) {
        self.separate(out);
        self.push_key(key, out);
        push_value(out, value, self.layout.spec.ascii);
    }

    /// Writes the members in front, then the nested objects with the extra fields.
    #[cold]
    fn push_nested(&mut self, nested: &NestedMembers, out: &mut Vec<u8>) {
        let (layout, record) = (self.layout, self.record);
        layout.assignments[..nested.front()].iter().for_each(|member| self.push_member(member, out));
        let mut open: Vec<&str> = Vec::new();
        for Leaf { parents, key, held } in nested.leaves(&layout.assignments, record) {
            if !record.has_room_for(out.len() - self.start) {
                break;
            }
            let shared = open.iter().zip(&parents).take_while(|(one, other)| one == other).count();
            out.extend(std::iter::repeat_n(b'}', open.len() - shared));
            open.truncate(shared);
            for parent in &parents[shared..] {
                self.separate(out);
                self.push_key(parent, out);
                out.push(b'{');
                open.push(parent);
            }
            self.separate(out);
            self.push_key(key, out);
            self.push_held(held, out);
        }
        out.extend(std::iter::repeat_n(b'}', open.len()));
    }

    /// Assigns all keys to a dict first, and then writes it.
    #[cold]
    fn push_assembled(&mut self, out: &mut Vec<u8>) {
        let (layout, record) = (self.layout, self.record);
        let mut held: Vec<(&str, Held<'_>)> = Vec::new();
        let mut assign = |key, value, only_absent: bool| match held.iter_mut().find(|(known, _)| *known == key) {
            Some(_) if only_absent => {}
            Some((_, known)) => *known = value,
            None => held.push((key, value)),
        };
        for member in &layout.assignments {
            match &member.source {
                Source::Extras => {
                    layout.extras(record).for_each(|(key, value)| assign(key, Held::Added(value), false));
                }
                Source::MessageItems => {
                    layout.items(record).for_each(|(key, value)| assign(key, Held::Added(value), false));
                }
                source if self.is_assigned(source) => {
                    assign(&*member.key, Held::Source(source), *source == Source::NullIfAbsent);
                }
                _ => {}
            }
        }
        for (key, value) in held {
            if !record.has_room_for(out.len() - self.start) {
                return;
            }
            self.separate(out);
            self.push_key(key, out);
            self.push_held(value, out);
        }
    }

    fn push_held(&mut self, held: Held<'_>, out: &mut Vec<u8>) {
        match held {
            Held::Source(source) => self.push_source(source, out),
            Held::Added(value) => push_value(out, value, self.layout.spec.ascii),
        }
    }

    fn push_key(&self, key: &str, out: &mut Vec<u8>) {
        push_string(out, key, self.layout.spec.ascii);
        out.extend_from_slice(if self.layout.spec.compact { b":" } else { b": " });
    }

    fn separate(&self, out: &mut Vec<u8>) {
        // No value ends with an opening brace.
        if out.last() != Some(&b'{') {
            out.extend_from_slice(if self.layout.spec.compact { b"," } else { b", " });
        }
    }

    fn is_assigned(&self, source: &Source) -> bool {
        match source {
            Source::Exception(_) => self.record.exception.is_some(),
            Source::Stack(_) => self.record.stack.is_some_and(|stack| !stack.is_empty()),
            Source::NestedExtras => false,
            _ => true,
        }
    }

    fn push_source(&mut self, source: &Source, out: &mut Vec<u8>) {
        let ascii = self.layout.spec.ascii;
        match source {
            Source::Attribute(attribute) => self.push_attribute(attribute, out),
            Source::Constant(json) => out.extend_from_slice(json),
            Source::Exception(shape) => push_text(out, self.record.exception, *shape, ascii),
            Source::Stack(shape) => push_text(out, self.record.stack, *shape, ascii),
            Source::Timestamp => {
                let created = self.values.clock.created(self.record.time_ns);
                out.push(b'"');
                push_iso_offset(created, &mut self.state.iso, out);
                out.push(b'"');
            }
            Source::NullIfAbsent => out.extend_from_slice(b"null"),
            Source::Level(texts) => {
                let mut text = Vec::new();
                texts.push(i64::from(self.record.level), &mut text);
                push_string(out, &String::from_utf8_lossy(&text), ascii);
            }
            Source::Open => out.push(b'{'),
            Source::Extras | Source::MessageItems | Source::NestedExtras | Source::Close => {}
        }
    }

    fn push_attribute(&mut self, attribute: &Attribute, out: &mut Vec<u8>) {
        let ascii = self.layout.spec.ascii;
        if matches!(attribute, Attribute::Message | Attribute::AscTime | Attribute::LevelName) {
            let mut text = std::mem::take(&mut self.state.scratch);
            text.clear();
            if self.values.push_plain(attribute, self.record, self.state, &mut text).is_err() {
                self.result = Err(RenderError::Malformed);
            }
            push_string(out, &String::from_utf8_lossy(&text), ascii);
            self.state.scratch = text;
            return;
        }
        push_value(out, self.values.get(attribute, self.record).unwrap_or(Value::None), ascii);
    }
}

fn push_text(out: &mut Vec<u8>, text: Option<&str>, shape: TextShape, ascii: bool) {
    let text = text.unwrap_or_default();
    match shape {
        TextShape::Whole => push_string(out, text, ascii),
        TextShape::Lines => push_lines(out, text, ascii),
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::Format;
    use super::super::styled_spec::NumberTexts;
    use super::super::{FormatSpec, RecordView};
    use super::*;
    use crate::record::{Encoder, Values, tag};

    fn spec(assignments: &[(&str, AssignedValue)]) -> ObjectSpec {
        let assignments = assignments.iter().map(|(key, assigned)| ((*key).to_owned(), assigned.clone())).collect();
        ObjectSpec { ascii: true, assignments, ..ObjectSpec::default() }
    }

    fn line(spec: ObjectSpec, encoder: &Encoder) -> String {
        let format = Format::compile(&FormatSpec::object(spec)).expect("supported");
        let values = Values::new(&encoder.bytes);
        let record = RecordView { time_ns: 1_500_000_000, level: 30, logger: "app", site: None, values };
        let mut out = Vec::new();
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");
        String::from_utf8(out).expect("UTF-8")
    }

    fn attribute(name: &str) -> AssignedValue {
        AssignedValue::Attribute(name.to_owned())
    }

    #[test]
    fn members_follow_the_assignments() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "café").context_str(tag::EXCEPTION, "E: x\ny");
        let mut spec = spec(&[
            ("level", attribute("levelname")),
            ("message", attribute("message")),
            ("user", attribute("user")),
            ("lineno", attribute("lineno")),
            ("taskName", attribute("taskName")),
            ("host", AssignedValue::Constant("\"h\"".to_owned())),
            ("exc_info", AssignedValue::Exception(TextShape::Lines)),
            ("stack_info", AssignedValue::Stack(TextShape::Whole)),
            ("", AssignedValue::Extras),
            ("timestamp", AssignedValue::Timestamp),
        ]);
        spec.prefix = "@cee: ".to_owned();

        assert_eq!(
            "@cee: {\"level\": \"WARNING\", \"message\": \"caf\\u00e9\", \"user\": null, \"lineno\": 0, \
             \"taskName\": null, \"host\": \"h\", \"exc_info\": [\"E: x\", \"y\"], \
             \"timestamp\": \"1970-01-01T00:00:01.500000+00:00\"}\n",
            line(spec, &encoder)
        );
    }

    #[test]
    fn a_later_value_of_a_key_replaces_the_earlier_one() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "m");
        encoder.field("level").int(3).field("when").bool(false).field("a").int(1).field("b").int(2);
        let mut spec = spec(&[
            ("level", attribute("levelname")),
            ("message", attribute("message")),
            ("", AssignedValue::Extras),
            ("when", AssignedValue::Timestamp),
            ("a", AssignedValue::NullIfAbsent),
            ("z", AssignedValue::NullIfAbsent),
        ]);
        spec.renamed = vec![("b".to_owned(), "a".to_owned())];

        assert_eq!(
            "{\"level\": 3, \"message\": \"m\", \"when\": \"1970-01-01T00:00:01.500000+00:00\", \"a\": 2, \
             \"z\": null}\n",
            line(spec, &encoder)
        );
    }

    #[test]
    fn keys_assigned_twice_keep_the_first_position() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "m").context_str(tag::STACK, "s");
        encoder.field("x").int(1);
        let twice = spec(&[
            ("a", attribute("message")),
            ("", AssignedValue::Extras),
            ("b", attribute("levelno")),
            ("a", AssignedValue::Constant("1".to_owned())),
        ]);
        let conditional = spec(&[
            ("a", attribute("message")),
            ("b", attribute("levelno")),
            ("a", AssignedValue::Stack(TextShape::Whole)),
        ]);

        assert_eq!("{\"a\": 1, \"x\": 1, \"b\": 30}\n", line(twice, &encoder));
        assert_eq!("{\"a\": \"s\", \"b\": 30}\n", line(conditional.clone(), &encoder));
        let mut without = Encoder::new();
        without.context_str(tag::MESSAGE, "m");
        assert_eq!("{\"a\": \"m\", \"b\": 30}\n", line(conditional, &without));
    }

    #[test]
    fn objects_are_nested_and_compact() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "{");
        let texts = NumberTexts { listed: vec![(30, "warning".to_owned())], ranges: Vec::new() };
        let mut spec = spec(&[
            ("log.level", AssignedValue::Level(texts)),
            ("message", attribute("message")),
            ("", AssignedValue::NestedExtras),
            ("ecs.version", AssignedValue::Constant("1".to_owned())),
            ("log", AssignedValue::Open),
            ("logger", attribute("name")),
            ("origin", AssignedValue::Open),
            ("message", attribute("lineno")),
            ("", AssignedValue::Close),
            ("", AssignedValue::Close),
        ]);
        spec.compact = true;

        assert_eq!(
            "{\"log.level\":\"warning\",\"message\":\"{\",\"ecs.version\":1,\"log\":{\"logger\":\"app\",\
             \"origin\":{\"message\":0}}}\n",
            line(spec.clone(), &encoder)
        );
        encoder.field("log.origin.a").int(1).field("ecs.x").int(2).field("z.y").int(3).field("log.z").int(4);
        assert_eq!(
            "{\"log.level\":\"warning\",\"message\":\"{\",\"ecs\":{\"x\":2},\"ecs.version\":1,\"log\":{\"logger\":\"app\",\
             \"origin\":{\"a\":1,\"message\":0},\"z\":4},\"z\":{\"y\":3}}\n",
            line(spec, &encoder)
        );
    }

    #[test]
    fn items_of_the_message_are_members() {
        let mut encoder = Encoder::new();
        encoder.field("c").int(1).field("user").int(2);
        encoder.item("a").int(3).item("user").str("ann").item("_x").none();
        encoder.context_str(tag::MESSAGE, "");
        let mut spec =
            spec(&[("message", attribute("message")), ("", AssignedValue::MessageItems), ("", AssignedValue::Extras)]);
        spec.renamed = vec![("a".to_owned(), "b".to_owned())];

        assert_eq!(
            "{\"message\": \"\", \"b\": 3, \"user\": 2, \"_x\": null, \"c\": 1}\n",
            line(spec.clone(), &encoder)
        );
        encoder.item("message").bool(true);
        assert_eq!("{\"message\": true, \"b\": 3, \"user\": 2, \"_x\": null, \"c\": 1}\n", line(spec, &encoder));
    }

    #[test]
    fn attributes_that_are_never_sent_are_refused() {
        let spec = spec(&[("args", attribute("args"))]);

        assert_eq!(Err(Unsupported::Attribute), ObjectLayout::compile(&spec, CpythonRules::default()));
    }
}
