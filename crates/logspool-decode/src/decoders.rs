//! Decoders: pure functions from the bytes of a frame to records. They do no I/O and keep no state.

pub mod convert;
pub mod density;
mod draft;
pub mod elastic;
pub mod form;
pub mod forward;
pub mod gelf;
pub mod gelf_chunks;
pub mod inflate;
pub mod journal;
pub mod json_line;
pub mod json_list;
pub mod lenient;
pub mod levels;
pub mod log_record;
pub mod loki;
mod marks;
pub mod otlp;
mod parts;
pub mod pickle;
mod protobuf_wire;
pub mod seq;
pub mod shapes;
pub mod splunk;
pub mod syslog;
pub mod times;
pub mod zone;
