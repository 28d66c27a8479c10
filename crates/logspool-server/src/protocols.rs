//! The protocols of senders. To add one, add its file and one line to the table below.
//!
//! HTTP is not in the table: its requests have a server of their own (`known_protocols.rs` has all protocols).

use crate::connection::protocol::Protocol;

table! {
    /// Every protocol that has a file in this folder.
    pub const TABLE: &[&Protocol];
    mod pickle; use pickle::PICKLE;
    mod json; use json::JSON;
    mod syslog; use syslog::SYSLOG;
    mod octet_counted; use octet_counted::OCTET_COUNTED;
    mod forward; use forward::FORWARD;
    mod relp; use relp::RELP;
    mod text; use text::TEXT;
}
