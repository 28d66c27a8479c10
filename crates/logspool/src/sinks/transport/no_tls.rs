//! Replaces `tls.rs` in a build without TLS. A session is never created, because the address parser refuses `tls://`.

use std::io;

use logspool_record::address::TlsIdentity;

use super::stream::Socket;

/// The type has no values, because no session can be created.
#[derive(Debug)]
pub enum Session {}

#[allow(missing_docs, reason = "as in tls.rs")]
impl Session {
    pub fn begin(_: &str, _: &TlsIdentity) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this build of logspool has no TLS"))
    }

    pub fn is_beginning(&self) -> bool {
        match *self {}
    }

    pub fn is_accepted(&mut self) -> bool {
        match *self {}
    }

    pub fn has_to_send(&self) -> bool {
        match *self {}
    }

    pub fn send(&mut self, _: &mut Socket, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn receive(&mut self, _: &mut Socket, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn finish(self, _: &mut Socket, _: &[u8]) -> io::Result<()> {
        match self {}
    }
}
