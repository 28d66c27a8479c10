//! Sending over sockets, for all sinks whose receiver listens at an address.
//!
//! `address` has the addresses that users write. `stream` has stream sockets and `tls` the TLS sessions on them. `link`
//! is one open socket of any kind. `sender` is the sink: it encodes records by a [`RecordForm`] and sends the messages.
//!
//! Delivery: a record counts as written when the operating system has accepted its whole message. Nothing confirms that
//! the receiver has it.
//!
//! - Over UDP each record is sent at most once. The network and the receiver may lose it. A record that the system does
//!   not accept stays in the queue.
//! - At a unix datagram socket the system accepts a message only if the receiver's socket has room for it.
//! - Over a stream, a message that the end of its connection cut is sent again as a whole over the next connection.
//!   Bytes that the system had accepted but the receiver had not read are lost. Before each write, the sink checks
//!   whether the receiver has closed the connection.
//!
//! While the receiver is away, slow or not there yet, records wait in the queue and in the spool.

mod address;
mod link;
mod memory_file;
pub mod opened;
mod sender;
pub mod stream;
#[cfg_attr(not(feature = "tls"), path = "transport/no_tls.rs")]
pub mod tls;

pub use address::PeerAddress;
pub use sender::{Carrier, EncodedMessages, PeerSink, RecordForm};
