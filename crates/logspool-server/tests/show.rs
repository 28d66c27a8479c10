//! Answers as people and programs see them.

use logspool_server::query::{Field, Pipeline, Stage};
use logspool_server::record::Record;
use logspool_server::record_id::RecordId;
use logspool_server::show::{Colour, Format, Output, TextStyle};
use logspool_server::stores::AnswerRow;
use logspool_server::value::Value;

const PLAIN: TextStyle = TextStyle { colour: Colour::Off, columns: 60 };

/// 2026-11-22T10:00:00.125Z.
const TIME: i64 = 1_795_341_600_125_000_000;

fn shown(rows: &[AnswerRow<'_>], format: Format, stage: Option<&Stage>, look: TextStyle) -> String {
    let mut output = Output::new(Vec::new(), format, stage, look);
    for row in rows {
        output.row(row).unwrap();
    }
    String::from_utf8(output.finish().unwrap()).unwrap()
}

fn record(level: u16, logger: &'static str, message: &'static str) -> Record<'static> {
    Record { time_ns: Some(TIME), level, logger: logger.into(), message: message.into(), ..Record::default() }
}

fn hostile() -> Record<'static> {
    Record {
        host: Some("a\u{1b}[2Jb".into()),
        exception: Some("Traceback:\n\u{9b}31m\u{202e}x\r\n".into()),
        fields: vec![
            ("k\n".into(), Value::text("\u{202e}v")),
            ("list".into(), Value::List(vec![Value::text("\u{7f}")])),
        ],
        ..record(30, "lo\rg", "one\ntwo\u{1b}[31m")
    }
}

#[test]
fn records_are_lines_in_columns_with_their_tracebacks_below() {
    let with_more = Record {
        host: Some("web-1".into()),
        trace_id: Some("4bf9".into()),
        exception: Some("Traceback (most recent call last):\n  File \"a.py\"\nValueError: x".into()),
        fields: vec![
            ("user".into(), Value::text("a b")),
            ("status".into(), Value::Int(503)),
            ("code".into(), Value::text("503")),
            ("path".into(), Value::text("/a/b.c?d")),
            ("two words".into(), Value::Null),
        ],
        ..record(50, "shop", "payment failed")
    };
    let rows = [
        AnswerRow::Record(record(20, "shop.cart", "added")),
        AnswerRow::Record(with_more),
        AnswerRow::Record(Record { time_ns: None, ..record(35, "", "") }),
    ];

    assert_eq!(
        "\
2026-11-22T10:00:00.125Z INFO     shop.cart added
2026-11-22T10:00:00.125Z CRITICAL shop      payment failed  host=web-1 trace_id=4bf9 user=\"a b\" status=503 \
code=\"503\" path=/a/b.c?d \"two words\"=null
    Traceback (most recent call last):
      File \"a.py\"
    ValueError: x
-                        35
",
        shown(&rows, Format::Text, None, PLAIN)
    );
}

#[test]
fn characters_that_control_a_terminal_are_escaped() {
    let text = shown(&[AnswerRow::Record(hostile())], Format::Text, None, PLAIN);

    assert_eq!(
        "2026-11-22T10:00:00.125Z WARNING  lo\\rg one\\ntwo\\x1b[31m  host=a\\x1b[2Jb \"k\\n\"=\\u202ev \
            list=[\"\\x7f\"]\n    Traceback:\n    \\x9b31m\\u202ex\n",
        text
    );
}

#[test]
fn levels_are_coloured_on_request() {
    let rows = [10, 20, 30, 40, 50].map(|level| AnswerRow::Record(record(level, "l", "m")));
    let text = shown(&rows, Format::Text, None, TextStyle { colour: Colour::On, ..PLAIN });

    let levels: Vec<_> = text.lines().map(|line| &line[25..line.len() - 4]).collect();
    assert_eq!(
        vec![
            "\x1b[2mDEBUG   \x1b[0m",
            "INFO    \x1b[0m",
            "\x1b[33mWARNING \x1b[0m",
            "\x1b[31mERROR   \x1b[0m",
            "\x1b[1;31mCRITICAL\x1b[0m"
        ],
        levels
    );
}

#[test]
fn counts_are_a_table() {
    let rows =
        [AnswerRow::Count(Some("shop"), 120_000), AnswerRow::Count(None, 7), AnswerRow::Count(Some("\u{1b}"), 1)];
    let by = |field| Some(Stage::CountBy(field));

    assert_eq!(
        " count  logger\n120000  shop\n     7  -\n     1  \\x1b\n",
        shown(&rows, Format::Text, by(Field::Logger).as_ref(), PLAIN)
    );
    assert_eq!(
        "count  level\n    3  ERROR\n    2  35\n",
        shown(
            &[AnswerRow::Count(Some("40"), 3), AnswerRow::Count(Some("35"), 2)],
            Format::Text,
            by(Field::Level).as_ref(),
            PLAIN
        )
    );
}

#[test]
fn intervals_are_bars_that_fit_the_width() {
    let begins = 1_795_341_600_000_000_000;
    let rows = [8, 0, 1, 1_000].map(|count| AnswerRow::Interval(begins, count));
    let stage = Stage::Histogram { interval_ns: 60_000_000_000 };
    let text = shown(&rows, Format::Text, Some(&stage), TextStyle { columns: 46, ..PLAIN });

    assert_eq!(
        "\
2026-11-22T10:00:00Z    8 ▏
2026-11-22T10:00:00Z    0
2026-11-22T10:00:00Z    1 ▏
2026-11-22T10:00:00Z 1000 ████████████████████
",
        text
    );
    for columns in [0, usize::MAX] {
        let narrow = shown(&rows, Format::Text, Some(&stage), TextStyle { columns, ..PLAIN });
        assert!(narrow.contains("██████████"), "{narrow}");
        assert!(narrow.len() < 4_000);
    }
}

#[test]
fn lines_of_json_are_records_with_their_time_as_text() {
    let line = shown(&[AnswerRow::Record(hostile())], Format::Ndjson, None, PLAIN);

    assert!(!line.trim_end().contains(logspool_server::visible::needs_escape), "{line}");
    assert_eq!(
        serde_json::json!({
            "id": RecordId::of(&hostile()).to_string(), "time": "2026-11-22T10:00:00.125000000Z", "time_ns": TIME, "level": 30, "logger": "lo\rg",
            "message": "one\ntwo\u{1b}[31m", "host": "a\u{1b}[2Jb", "exception": "Traceback:\n\u{9b}31m\u{202e}x\r\n",
            "fields": {"k\n": "\u{202e}v", "list": ["\u{7f}"]},
        }),
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    );
}

#[test]
fn lines_of_json_are_counts_by_their_field() {
    let rows = [AnswerRow::Count(Some("40"), 3), AnswerRow::Count(None, 1)];
    let by = |field| Some(Stage::CountBy(field));

    assert_eq!(
        "{\"level\":40,\"count\":3}\n{\"level\":null,\"count\":1}\n",
        shown(&rows, Format::Ndjson, by(Field::Level).as_ref(), PLAIN)
    );
    assert_eq!(
        "{\"a\\\"b\":\"40\",\"count\":3}\n{\"a\\\"b\":null,\"count\":1}\n",
        shown(&rows, Format::Ndjson, by(Field::Extra("a\"b".to_owned())).as_ref(), PLAIN)
    );
    let stage = Stage::Histogram { interval_ns: 1_000_000_000 };
    assert_eq!(
        "{\"time\":\"1970-01-01T00:00:00Z\",\"count\":5}\n",
        shown(&[AnswerRow::Interval(0, 5)], Format::Ndjson, Some(&stage), PLAIN)
    );
}

#[test]
fn csv_keeps_every_character_in_quotes() {
    let full = Record {
        arrived_ns: Some(record(0, "", "").time_ns.unwrap() + 1_000_000_000),
        process: Some(u64::MAX),
        task: Some("".into()),
        fields: vec![("a".into(), Value::text("b,c"))],
        ..record(30, "a,b", "say \"hi\"\n\u{1b}")
    };

    assert_eq!(
        "time,level,logger,message,file,line,function,host,process,process_name,thread,thread_name,task,trace_id,\
            span_id,exception,stack,fields,arrived\r\n\
            2026-11-22T10:00:00.125000000Z,30,\"a,b\",\"say \"\"hi\"\"\n\u{1b}\",,,,,18446744073709551615,,,,\"\",,,,,\
            \"{\"\"a\"\":\"\"b,c\"\"}\",2026-11-22T10:00:01.125000000Z\r\n",
        shown(&[AnswerRow::Record(full)], Format::Csv, None, PLAIN)
    );
    let by = Stage::CountBy(Field::Extra("a,b".to_owned()));
    let rows = [AnswerRow::Count(Some("x"), 2), AnswerRow::Count(Some(""), 1), AnswerRow::Count(None, 1)];
    assert_eq!("\"a,b\",count\r\nx,2\r\n\"\",1\r\n,1\r\n", shown(&rows, Format::Csv, Some(&by), PLAIN));
    let stage = Stage::Histogram { interval_ns: 1_000_000_000 };
    assert_eq!("time,count\r\n", shown(&[], Format::Csv, Some(&stage), PLAIN));
}

#[test]
fn a_record_is_shown_the_same_alone_and_among_others() {
    let text = |key: &'static str, value: &'static str| (key.into(), Value::text(value));
    let mut records = Vec::new();
    for time_ns in [TIME, TIME + 1_000_000, TIME + 875_000_000, TIME - 1_000_000_000, -1, 0, i64::MIN, i64::MAX] {
        for host in [None, Some("web-1"), Some(""), Some("\u{1b}")] {
            for fields in [
                vec![],
                vec![text("host", "web-1")],
                vec![text("", "")],
                vec![("n".into(), Value::Int(1)), text("a", "b")],
                vec![text("a", "b"), text("c", "true")],
                vec![text("a", "c"), text("c", "true")],
            ] {
                let host = host.map(Into::into);
                records.push(Record { time_ns: Some(time_ns), host, fields, ..record(20, "shop", "m") });
            }
        }
    }
    let rows: Vec<_> = records.iter().cloned().map(AnswerRow::Record).collect();
    let alone: String = rows.iter().map(|row| shown(std::slice::from_ref(row), Format::Text, None, PLAIN)).collect();

    assert_eq!(alone, shown(&rows, Format::Text, None, PLAIN));
}

#[test]
fn csv_of_a_query_has_a_column_for_each_field_and_names_of_levels() {
    let with = |fields: &[(&'static str, Value<'static>)]| Record {
        fields: fields.iter().cloned().map(|(name, value)| (name.into(), value)).collect(),
        ..record(40, "shop", "m")
    };
    let look = TextStyle { colour: Colour::Off, columns: 80 };
    let mut output = Output::new(Vec::new(), Format::Csv, None, look).with_columns(&Pipeline::default());
    let rows = [
        with(&[("user", Value::text("u,1")), ("host", Value::Int(5))]),
        with(&[("status", Value::Int(500)), ("items", Value::List(vec![Value::Int(1)]))]),
    ];
    let ids = [0, 1].map(|at| RecordId::of(&rows[at]).to_string());
    for row in rows {
        output.row(&AnswerRow::Record(row)).unwrap();
    }
    for number in 0..1_000 {
        let late = if number < 998 { "user" } else { "late" };
        output.row(&AnswerRow::Record(with(&[(late, Value::Int(number))]))).unwrap();
    }

    let text = String::from_utf8(output.finish().unwrap()).unwrap();
    let lines: Vec<_> = text.split("\r\n").collect();
    let begin = "2026-11-22T10:00:00.125000000Z,ERROR,shop,m,,,,,,,,,,,,,,";
    assert!(
        lines[0].starts_with("id,time,level,logger,message,")
            && lines[0].ends_with("user,fields.host,status,items,fields")
    );
    assert_eq!(format!("{},{begin},\"u,1\",5,,,", ids[0]), lines[1]);
    assert_eq!(format!("{},{begin},,,500,[1],", ids[1]), lines[2]);
    assert!(lines[1002].ends_with(",,,,,\"{\"\"late\"\":999}\""), "{}", lines[1002]);
    assert_eq!(1_004, lines.len());
}
