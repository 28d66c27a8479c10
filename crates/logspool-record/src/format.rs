//! Record to bytes: message templates, Formatter patterns, time, JSON, entries for a service.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). Output is byte-identical to CPython's `logging.Formatter`.
//!
//! ```text
//! FormatSpec --compile--> Format (pieces) --render(RecordView, RenderState)--> bytes of one line
//! msg        --parse----> MessageTemplate --render(arguments)--------------> the message in it
//! ```
//!
//! Two rules hold in this module. A format or template that cannot be reproduced exactly is refused when it is compiled
//! ([`Unsupported`], [`MessageTemplate::deferrable`], [`RenderedBy`]). The bytes of a record are hostile: damage ends
//! in a marker and an error, never in a panic.

mod argument_type;
mod attribute;
mod attribute_values;
mod brace;
mod braced;
mod braced_text;
mod check;
mod codec_items;
mod compile;
mod constant;
pub mod control;
mod directive;
pub mod entry;
mod event_time;
mod float;
mod fmt_grammar;
mod fmt_render;
mod hex_float;
pub mod integer;
pub mod json;
mod json_escape;
mod json_text;
mod line;
pub mod line_pattern;
mod line_program;
mod malformed;
mod moment;
mod needs;
mod nested;
mod object;
mod object_members;
mod object_spec;
mod pad;
mod pattern;
pub mod percent;
mod placeholder;
mod program;
mod program_compiler;
mod raw_line;
mod render_state;
mod repr;
mod rust_grammar;
mod rust_render;
mod spec;
mod spec_codec;
mod style;
mod styled;
mod styled_spec;
mod template;
pub mod time;
mod unsupported;
mod view;
mod wide_integer;

pub use argument_type::{ArgumentType, TypedArgument};
pub use braced::BracedTemplate;
pub use check::{check, check_grammar};
pub use compile::Format;
pub use directive::{ArgumentKind, Conversion, Directive, Flags, RenderedBy, WidthOrPrecision};
pub use float::{Case, Notation};
pub use json_text::push_string as push_json_string;
pub use line_pattern::{LevelWords, pattern_error};
pub use line_program::ProgramKey;
pub use malformed::Malformed;
pub use moment::{RecordTimes, push_isoformat};
pub use needs::{Need, Needs};
pub use object_spec::{AssignedValue, ObjectSpec, TextShape};
pub use percent::MessageTemplate;
pub use placeholder::FormatError;
pub use render_state::{RenderError, RenderState, notice_zone, zone_changed, zone_changes};
pub use repr::{NonAscii, push_repr};
pub use spec::{ControlRule, Extras, FormatSpec, Layout};
pub use style::Style;
pub use styled_spec::{DerivedAttribute, FieldRule, NumberRange, NumberTexts, Part, StyledSpec};
pub use template::SiteTemplate;
pub use time::unknown_directive;
pub use unsupported::Unsupported;
pub use view::{CompiledSite, ParsedRecord, RecordView};
