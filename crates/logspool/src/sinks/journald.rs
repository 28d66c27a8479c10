//! The journal of systemd, by its native protocol: a datagram for each record.
//!
//! A datagram has lines `NAME=value`. A value with a line end has its length before it. A datagram that the socket does not
//! accept is passed as a sealed memory file.
//!
//! The journal stamps a record with the time of its arrival. The field TIMESTAMP has the time of the call.
//!
//! A record counts as written when the system has put it into the socket of journald; see `transport.rs`.

use std::io;

use super::parts::{RecordParts, push_time, severity};
use super::transport::{Carrier, EncodedMessages, PeerAddress, PeerSink, RecordForm};
use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue};

crate::options! {
    /// Sends records to the journal of systemd, with all parts as fields.
    pub struct JournaldOptions {
        /// The socket of journald, `unix:///path`.
        pub address: JournalAddress = Text("unix:///run/systemd/journal/socket"),
        /// The field SYSLOG_IDENTIFIER, which `journalctl -t` selects; without it journald shows the name of the command.
        pub identifier: Option<String> = Nothing,
    }
}

/// The address of journald's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalAddress(PeerAddress);

impl OptionField for JournalAddress {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        if !text.starts_with("unix://") {
            return Err(format!("{text:?} is none: it must be unix:///PATH"));
        }
        PeerAddress::from_value(value).map(Self)
    }

    fn to_value(&self) -> OptionValue {
        self.0.to_value()
    }
}

impl SinkOptions for JournaldOptions {
    const KIND: &'static str = "journald";
    const TRAITS: Traits = Traits::REMOTE;

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(PeerSink::new(self.address.0.clone(), JournalForm { identifier: self.identifier.clone() })))
    }

    fn place(&self) -> Place {
        self.address.0.place()
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        let address = JournalAddress(PeerAddress::unix(format!("{path}.socket")));
        vec![Self { address, identifier: Some("contract".to_owned()) }]
    }
}

/// Maximum length of a field's name, as journald specifies.
const MAX_NAME_BYTES: usize = 64;

/// Names that the sink gives to parts. A field of the record with such a name gets a prefix.
const PART_NAMES: [&str; 17] = [
    "MESSAGE",
    "PRIORITY",
    "SYSLOG_IDENTIFIER",
    "SYSLOG_PID",
    "CODE_FILE",
    "CODE_LINE",
    "CODE_FUNC",
    "LOGGER",
    "LEVEL",
    "TIMESTAMP",
    "HOST",
    "PROCESS_NAME",
    "THREAD_ID",
    "THREAD_NAME",
    "TASK_NAME",
    "EXCEPTION_TEXT",
    "STACK_TEXT",
];

/// Encodes records as entries of the journal.
#[derive(Debug)]
struct JournalForm {
    identifier: Option<String>,
}

impl RecordForm for JournalForm {
    const PASSES_FILES: bool = true;

    fn encode(&mut self, record: &[u8], carrier: Carrier, _: u64, out: &mut EncodedMessages) {
        let parts = RecordParts::read(record);
        let mut time = String::new();
        push_time(&mut time, parts.seconds, parts.nanoseconds);
        push_field(&mut out.bytes, "MESSAGE", &parts.full_message());
        push_field(&mut out.bytes, "PRIORITY", &severity(parts.level).to_string());
        push_field(&mut out.bytes, "LEVEL", &parts.level.to_string());
        push_field(&mut out.bytes, "TIMESTAMP", &time);
        for (name, text) in [
            ("SYSLOG_IDENTIFIER", self.identifier.as_deref()),
            ("CODE_FILE", parts.file.as_deref()),
            ("CODE_FUNC", parts.function.as_deref()),
            ("LOGGER", Some(&*parts.logger).filter(|name| !name.is_empty())),
            ("HOST", Some(&*parts.host).filter(|name| !name.is_empty())),
            ("PROCESS_NAME", parts.process_name.as_deref()),
            ("THREAD_NAME", parts.thread_name.as_deref()),
            ("TASK_NAME", parts.task.as_deref()),
            ("EXCEPTION_TEXT", parts.exception.as_deref()),
            ("STACK_TEXT", parts.stack.as_deref()),
        ] {
            if let Some(text) = text {
                push_field(&mut out.bytes, name, text);
            }
        }
        for (name, number) in [("CODE_LINE", parts.line), ("SYSLOG_PID", parts.process), ("THREAD_ID", parts.thread)] {
            if let Some(number) = number {
                push_field(&mut out.bytes, name, &number.to_string());
            }
        }
        for (name, value) in &parts.fields {
            push_field(&mut out.bytes, &field_name(name), &value.as_text());
        }
        if carrier == Carrier::Stream {
            // As in the export format of the journal.
            out.bytes.push(b'\n');
        }
        out.ends.push(out.bytes.len());
    }
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        out.push(b'=');
    }
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}

/// A name that journald accepts: upper-case letters, digits and `_`, beginning with a letter.
fn field_name(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let shown: String = name.chars().map(upper).skip_while(|c| !c.is_ascii_uppercase()).take(MAX_NAME_BYTES).collect();
    match &*shown {
        "" => "FIELD".to_owned(),
        known if PART_NAMES.contains(&known) => format!("FIELD_{shown}"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::os::fd::FromRawFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::sink::{Lines, Mark};
    use crate::sinks::parts::tests::entry;

    fn encoded(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut out = EncodedMessages::default();
        let mut form = JournalForm { identifier: Some("shop".to_owned()) };
        form.encode(&entry(parts), Carrier::Datagrams { most: usize::MAX }, 0, &mut out);
        assert_eq!([out.bytes.len()], *out.ends);
        out.bytes
    }

    #[test]
    fn every_part_becomes_a_field() {
        let parts = [
            ("logger", "shop.cart"),
            ("file", "/srv/shop.py"),
            ("line", "7"),
            ("function", "pay"),
            ("process", "77"),
            ("host", "web-1"),
            ("message", "paid"),
            ("process_name", "MainProcess"),
            ("thread", "5"),
            ("thread_name", "MainThread"),
            ("task", "Task-1"),
            ("exception", "Traceback"),
            ("user name", "ann"),
            ("priority", "mine"),
        ];
        let expected = b"MESSAGE\n\x0e\0\0\0\0\0\0\0paid\nTraceback\nPRIORITY=6\nLEVEL=20\n\
            TIMESTAMP=2024-02-29T12:34:56.789012Z\nSYSLOG_IDENTIFIER=shop\nCODE_FILE=/srv/shop.py\nCODE_FUNC=pay\n\
            LOGGER=shop.cart\nHOST=web-1\nPROCESS_NAME=MainProcess\nTHREAD_NAME=MainThread\nTASK_NAME=Task-1\n\
            EXCEPTION_TEXT=Traceback\nCODE_LINE=7\nSYSLOG_PID=77\nTHREAD_ID=5\nUSER_NAME=ann\nFIELD_PRIORITY=mine\n";

        assert_eq!(String::from_utf8_lossy(expected), String::from_utf8_lossy(&encoded(&parts)));
    }

    #[test]
    fn field_names_are_valid_for_journald() {
        for (name, expected) in [
            ("user", "USER"),
            ("_private", "PRIVATE"),
            ("1st \u{e9}tage", "ST__TAGE"),
            ("\u{e9}", "FIELD"),
            ("", "FIELD"),
            ("message", "FIELD_MESSAGE"),
        ] {
            assert_eq!(expected, field_name(name));
        }
        assert_eq!("X".repeat(64), field_name(&"x".repeat(100)));
    }

    #[test]
    fn only_a_unix_socket_is_an_address() {
        let read = |text: &str| JournalAddress::from_value(&OptionValue::Text(text.to_owned()));

        assert!(read("unix:///run/systemd/journal/socket").is_ok());
        for text in ["udp://127.0.0.1:1", "/run/systemd/journal/socket", "unix://run"] {
            assert!(read(text).unwrap_err().contains("unix:///"), "{text}");
        }
    }

    /// Receives one datagram, and the file that it passes.
    fn receive(socket: &UnixDatagram) -> (Vec<u8>, Option<std::fs::File>) {
        use std::os::fd::AsRawFd;
        let mut bytes = vec![0; 1 << 20];
        let mut control = [0_u64; 8];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: all pointers of the header are to live values with their lengths, and a header that exists holds one
        // descriptor that nothing else owns.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
            (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
            let length = libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
            bytes.truncate(usize::try_from(length).unwrap());
            let header = libc::CMSG_FIRSTHDR(&message);
            let file = (!header.is_null())
                .then(|| std::fs::File::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()));
            (bytes, file)
        }
    }

    #[test]
    fn a_long_record_is_passed_as_a_sealed_memory_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal").to_str().unwrap().to_owned();
        let receiver = UnixDatagram::bind(&path).unwrap();
        let address = JournalAddress(PeerAddress::unix(path));
        let mut sink = JournaldOptions { address, identifier: None }.open(Descriptor::Open).unwrap();
        let text = "z".repeat(3_000_000);
        for message in ["short", &text] {
            let record = entry(&[("message", message)]);
            let marks = [Mark { end: record.len() as u32, level: 20, class: 2, member: 0, seconds: 0 }];
            assert_eq!(record.len(), sink.write(Lines { bytes: &record, marks: &marks, before: 0 }).unwrap());
        }
        let (bytes, file) = receive(&receiver);
        assert!(bytes.starts_with(b"MESSAGE=short\n") && file.is_none());
        let (bytes, file) = receive(&receiver);
        assert!(bytes.is_empty());
        let mut file = file.unwrap();
        let mut passed = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut passed).unwrap();
        assert!(passed.starts_with(&format!("MESSAGE={text}\nPRIORITY=6\n")));
        // SAFETY: the call reads the seals of an open file.
        let seals = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_GET_SEALS) };
        assert_eq!(libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE, seals);
        assert_eq!(0, sink.cut_count());
    }
}
