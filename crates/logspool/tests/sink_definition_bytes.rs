//! The bytes of a sink's definition in shared memory, as recorded: a recoverer of another version reads them.

use logspool::sinks::{
    Compression, ConsoleOptions, FileOptions, NullOptions, RotatingFileOptions, RotationRules, ServiceOptions,
    SinkOptions, TimedRotatingFileOptions, WatchedFileOptions,
};
use logspool_record::Encoder;
use logspool_record::definition::{Descriptor, SinkDefinition, Zone};

/// What the sink table holds for a definition.
fn encoded(definition: &SinkDefinition) -> Vec<u8> {
    let mut encoder = Encoder::new();
    definition.encode(&mut encoder);
    encoder.bytes
}

/// A tuple of two: the place or `None`, and the name. Lengths are in the byte order of the machine.
fn recorded(place: Option<&str>, name: &str) -> Vec<u8> {
    let text = |text: &str| [b"\x06", &(text.len() as u32).to_ne_bytes()[..], text.as_bytes()].concat();
    let place = place.map_or(b"\x01".to_vec(), text);
    [b"\x08\x02\x00\x00\x00".to_vec(), place, text(name)].concat()
}

fn of(options: &impl SinkOptions) -> Vec<u8> {
    encoded(&options.define(Descriptor::Open))
}

#[test]
fn the_bytes_of_every_kind_equal_the_recorded_ones() {
    let path = || "/var/log/ä.log".to_owned();

    let a_path = recorded(Some("/var/log/ä.log"), "/var/log/ä.log");

    assert_eq!(a_path, of(&FileOptions { path: path() }));
    assert_eq!(a_path, of(&WatchedFileOptions { path: path() }));
    assert_eq!(
        a_path,
        of(&RotatingFileOptions {
            path: path(),
            max_bytes: 10,
            backup_count: 3,
            terminator_chars: 1,
            rules: RotationRules::Together { compress: Some(Compression::Zstd) },
        })
    );
    assert_eq!(
        a_path,
        of(&TimedRotatingFileOptions {
            path: path(),
            when: "midnight".to_owned(),
            interval: 1,
            backup_count: 3,
            zone: Zone::Utc,
            at_time_seconds: Some(60),
            rollover_at: Some(1_700_000_000),
            rules: RotationRules::CURRENT,
        })
    );
    for (number, name) in [(0, "descriptor 0"), (1, "stdout"), (2, "stderr"), (7, "descriptor 7")] {
        assert_eq!(recorded(None, name), of(&ConsoleOptions { descriptor: number }));
    }
    assert_eq!(recorded(None, "null"), of(&NullOptions {}));
    for address in ["tcp://127.0.0.1:9020", "tcp://[::1]:9020", "unix:///run/logspool.sock"] {
        assert_eq!(recorded(Some(address), address), of(&ServiceOptions::at(address.parse().unwrap())));
    }
    let whole = "tls://logs:9443?authorities=/etc/our%20ca.pem&server_name=logs";
    assert_eq!(recorded(Some(whole), "tls://logs:9443"), of(&ServiceOptions::at(whole.parse().unwrap())));
}

#[test]
fn the_definition_of_a_file_has_the_specified_bytes() {
    let definition = FileOptions { path: "/a".to_owned() }.define(Descriptor::Open);
    let expected = b"\x08\x02\0\0\0\x06\x02\0\0\0/a\x06\x02\0\0\0/a";

    assert_eq!(&expected[..], encoded(&definition));
}
