//! A sample of each sender of JSON objects, with the record that it becomes.

use serde_json::json;

use crate::decoders::{gelf, json_line};
use crate::record::Record;

/// 2026-09-21T14:13:20.125Z
const TIME: i64 = 1_790_000_000_125_000_000;

fn read(line: &str) -> serde_json::Value {
    let pairs = json_line::object(line.as_bytes()).unwrap();
    let is_gelf = pairs.iter().any(|(name, _)| name == "short_message");
    let record: Record<'_> = if is_gelf { gelf::from_pairs(pairs) } else { json_line::from_pairs(pairs) };
    serde_json::to_value(record).unwrap()
}

/// Level and message, then the other parts, of the record that a line becomes.
#[track_caller]
fn check(sender: &str, line: &str, level: u16, message: &str, rest: serde_json::Value) {
    let mut expected = json!({"level": level, "logger": "", "message": message});
    for (name, value) in rest.as_object().unwrap() {
        expected[name] = value.clone();
    }
    assert_eq!(expected, read(line), "{sender}: {line}");
}

#[test]
fn records_of_node_loggers_are_read() {
    check(
        "pino",
        r#"{"level":30,"time":1790000000125,"pid":7,"hostname":"h","msg":"m","user":1}"#,
        20,
        "m",
        json!({"time_ns": TIME, "process": 7, "host": "h", "fields": {"user": 1}}),
    );
    check("pino without base", r#"{"level":50,"time":1790000000125,"msg":"m"}"#, 40, "m", json!({"time_ns": TIME}));
    check(
        "bunyan",
        r#"{"name":"app","hostname":"h","pid":7,"level":60,"err":{"message":"x","stack":"Error: x\n at y"},
            "msg":"m","time":"2026-09-21T14:13:20.125Z","v":0}"#,
        50,
        "m",
        json!({"time_ns": TIME, "logger": "app", "process": 7, "host": "h", "exception": "Error: x\n at y",
            "fields": {"err": {"message": "x"}, "v": 0}}),
    );
    check(
        "winston",
        r#"{"level":"\u001b[32msilly\u001b[39m","message":{"a":1},"timestamp":"2026-09-21T14:13:20.125Z"}"#,
        5,
        r#"{"a":1}"#,
        json!({"time_ns": TIME, "fields": {"severity": "silly"}}),
    );
    check(
        "log4js",
        r#"{"startTime":"2026-09-21T14:13:20.125Z","categoryName":"app","data":["paid",{"n":7}],
            "level":{"level":40000,"levelStr":"ERROR","colour":"red"},"context":{},"pid":7}"#,
        40,
        r#"paid {"n":7}"#,
        json!({"time_ns": TIME, "logger": "app", "process": 7, "fields": {"data": ["paid", {"n": 7}], "context": {}}}),
    );
}

#[test]
fn records_of_go_loggers_are_read() {
    check(
        "zap",
        r#"{"level":"dpanic","ts":1790000000.125,"logger":"app","caller":"shop/cart.go:12","msg":"m",
            "stacktrace":"main.main"}"#,
        50,
        "m",
        json!({"time_ns": TIME, "logger": "app", "file": "shop/cart.go", "line": 12, "stack": "main.main",
            "fields": {"severity": "dpanic"}}),
    );
    check(
        "slog",
        r#"{"time":"2026-09-21T14:13:20.125Z","level":"ERROR+4",
            "source":{"function":"main.f","file":"a.go","line":3},"msg":"m"}"#,
        50,
        "m",
        json!({"time_ns": TIME, "function": "main.f", "file": "a.go", "line": 3, "fields": {"severity": "ERROR+4"}}),
    );
    check(
        "hclog",
        r#"{"@level":"warn","@message":"m","@module":"vault","@caller":"a.go:1",
            "@timestamp":"2026-09-21T14:13:20.125Z"}"#,
        30,
        "m",
        json!({"time_ns": TIME, "logger": "vault", "file": "a.go", "line": 1}),
    );
    check(
        "zerolog",
        r#"{"level":"info","time":1790000000,"message":7}"#,
        20,
        "7",
        json!({"time_ns": TIME - 125_000_000}),
    );
}

#[test]
fn records_of_dotnet_and_java_loggers_are_read() {
    check(
        "clef",
        r#"{"@t":"2026-09-21T14:13:20.125Z","@mt":"{User} paid {@Sum:0.0} {{x}} {y}","@l":"Warning","@x":"trace",
            "User":"ann","Sum":1.5,"SourceContext":"Shop"}"#,
        30,
        "ann paid 1.5 {x} {y}",
        json!({"time_ns": TIME, "logger": "Shop", "exception": "trace", "fields": {"User": "ann", "Sum": 1.5}}),
    );
    check(
        "clef without a level",
        r#"{"@t":"2026-09-21T14:13:20.125Z","@m":"m","@mt":"{x}","@tr":"t","@sp":"s"}"#,
        20,
        "m",
        json!({"time_ns": TIME, "trace_id": "t", "span_id": "s", "fields": {"@mt": "{x}"}}),
    );
    check(
        "logback",
        r#"{"@timestamp":"2026-09-21T14:13:20.125+0000","@version":"1","message":"m","logger_name":"a.B",
            "thread_name":"main","level":"INFO","level_value":20000,"stack_trace":"x"}"#,
        20,
        "m",
        json!({"time_ns": TIME, "logger": "a.B", "thread_name": "main", "exception": "x",
            "fields": {"@version": "1", "level_value": 20000}}),
    );
    check(
        "log4j2",
        r#"{"instant":{"epochSecond":1790000000,"nanoOfSecond":125000000},"thread":"main","level":"FATAL",
            "loggerName":"a.B","message":"m","threadId":1,"thrown":{"name":"E","extendedStackTrace":"E: x"}}"#,
        50,
        "m",
        json!({"time_ns": TIME, "logger": "a.B", "thread": 1, "thread_name": "main", "exception": "E: x",
            "fields": {"thrown": {"name": "E"}}}),
    );
    check(
        "log4j2 as GELF",
        r#"{"host":"h","timestamp":"1790000000.125","level":3,"_thread":"main","_logger":"a.B","short_message":"m",
            "full_message":"E: x\n\tat a.B.c(B.java:7)"}"#,
        40,
        "m",
        json!({"time_ns": TIME, "host": "h", "thread_name": "main", "logger": "a.B",
            "exception": "E: x\n\tat a.B.c(B.java:7)"}),
    );
}

#[test]
fn gelf_with_all_kinds_of_levels_is_read() {
    for (level, number, name) in [
        ("3", 40, None),
        (r#""3""#, 40, None),
        (r#""error""#, 40, None),
        ("5", 20, Some("notice")),
        ("1.0", 50, Some("alert")),
    ] {
        let fields = name.map_or(json!({}), |name| json!({"fields": {"severity": name}}));
        check("gelf", &format!(r#"{{"short_message":"m","level":{level}}}"#), number, "m", fields);
    }
}

#[test]
fn records_of_python_and_php_loggers_are_read() {
    check(
        "loguru",
        r#"{"text":"12:00 | ERROR | m\nTraceback (most recent call last):\nE: x\n","record":{"elapsed":{"repr":"0"},
            "exception":null,"extra":{"level":"x"},"file":{"name":"a.py","path":"/a.py"},"function":"f",
            "level":{"icon":"!","name":"ERROR","no":40},"line":3,"message":"m","module":"a","name":"app",
            "process":{"id":7,"name":"P"},"thread":{"id":8,"name":"T"},
            "time":{"repr":"2026-09-21 14:13:20.125+00:00","timestamp":1790000000.125}}}"#,
        40,
        "m",
        json!({"time_ns": TIME, "logger": "app", "file": "/a.py", "line": 3, "function": "f", "process": 7,
            "process_name": "P", "thread": 8, "thread_name": "T",
            "exception": "Traceback (most recent call last):\nE: x",
            "fields": {"level": "x", "record": {"exception": null}}}),
    );
    check(
        "python",
        r#"{"levelno":30,"levelname":"WARNING","name":"a","message":"m","asctime":"2026-09-21 14:13:20,125"}"#,
        30,
        "m",
        json!({"time_ns": TIME, "logger": "a", "fields": {"levelname": "WARNING"}}),
    );
    check("python's numbers", r#"{"level":"40","message":"m"}"#, 40, "m", json!({}));
    check("python's numbers", r#"{"level":30.0,"message":"m"}"#, 30, "m", json!({}));
    check(
        "monolog",
        r#"{"message":"m","context":{},"level":250,"level_name":"NOTICE","channel":"app",
            "datetime":"2026-09-21T14:13:20.125+00:00"}"#,
        20,
        "m",
        json!({"time_ns": TIME, "logger": "app", "fields": {"context": {}, "severity": "notice"}}),
    );
}

#[test]
fn records_of_collectors_and_system_loggers_are_read() {
    check(
        "journalctl",
        r#"{"MESSAGE":[109,195,188],"PRIORITY":"2","__REALTIME_TIMESTAMP":"1790000000125000","_HOSTNAME":"h",
            "SYSLOG_IDENTIFIER":"sshd","_PID":"7","_COMM":"sshd","CODE_FILE":"a.c","CODE_LINE":"3","_UID":"0"}"#,
        50,
        "mü",
        json!({"time_ns": TIME, "logger": "sshd", "host": "h", "process": 7, "process_name": "sshd", "file": "a.c",
            "line": 3, "fields": {"_UID": "0", "severity": "crit"}}),
    );
    check(
        "syslog-ng",
        r#"{"PROGRAM":"sshd","PRIORITY":"notice","PID":"7","MESSAGE":"m","HOST":"h","FACILITY":"auth",
            "ISODATE":"2026-09-21T14:13:20.125+00:00"}"#,
        20,
        "m",
        json!({"time_ns": TIME, "logger": "sshd", "host": "h", "process": 7,
            "fields": {"FACILITY": "auth", "severity": "notice"}}),
    );
    check(
        "docker",
        r#"{"log":"m\r\n","stream":"stdout","time":"2026-09-21T14:13:20.125Z"}"#,
        0,
        "m",
        json!({"time_ns": TIME, "fields": {"stream": "stdout"}}),
    );
    check("fluent bit", r#"{"date":1790000000.125,"log":" m"}"#, 0, " m", json!({"time_ns": TIME}));
    check("victorialogs", r#"{"_time":"2026-09-21T14:13:20.125Z","_msg":"m"}"#, 0, "m", json!({"time_ns": TIME}));
    check(
        "ecs",
        r#"{"@timestamp":"2026-09-21T14:13:20.125Z","log":{"level":"error","logger":"a","origin":{"file":{"name":"f",
            "line":3},"function":"g"},"x":1},"message":"m","host":{"name":"h","ip":["::1"]},
            "process":{"pid":7,"name":"P","thread":{"id":8,"name":"T"}},"trace":{"id":"t"},"span":{"id":"s"},
            "error":{"stack_trace":"E","message":"x"},"service":{"name":"shop"},"event":{"dataset":"d"}}"#,
        40,
        "m",
        json!({"time_ns": TIME, "logger": "a", "file": "f", "line": 3, "function": "g", "host": "h", "process": 7,
            "process_name": "P", "thread": 8, "thread_name": "T", "trace_id": "t", "span_id": "s", "exception": "E",
            "fields": {"log": {"x": 1}, "host": {"ip": ["::1"]}, "error": {"message": "x"},
                "service": {"name": "shop"}, "event": {"dataset": "d"}}}),
    );
    check(
        "ecs with dots",
        r#"{"log.level":"WARN ","log.logger":"a","host.name":"h","message":"m"}"#,
        30,
        "m",
        json!({"logger": "a", "host": "h"}),
    );
    check(
        "postgresql",
        r#"{"timestamp":"2026-09-21 14:13:20.125 UTC","pid":7,"error_severity":"PANIC","message":"m","user":"u"}"#,
        50,
        "m",
        json!({"time_ns": TIME, "process": 7, "fields": {"severity": "PANIC", "user": "u"}}),
    );
    check(
        "mongodb",
        r#"{"t":{"$date":"2026-09-21T14:13:20.125+00:00"},"s":"E","c":"NETWORK","id":1,"ctx":"main","msg":"m"}"#,
        40,
        "m",
        json!({"time_ns": TIME, "logger": "NETWORK", "thread_name": "main", "fields": {"id": 1}}),
    );
    check(
        "google",
        r#"{"severity":"NOTICE","message":"m","timestamp":{"seconds":1790000000,"nanos":125000000},
            "logging.googleapis.com/trace":"t","logging.googleapis.com/spanId":"s",
            "logging.googleapis.com/sourceLocation":{"file":"f","line":"3"}}"#,
        20,
        "m",
        json!({"time_ns": TIME, "trace_id": "t", "span_id": "s", "file": "f", "line": 3,
            "fields": {"severity": "NOTICE"}}),
    );
    check("syslog numbers", r#"{"severity":3,"msg":"m"}"#, 40, "m", json!({}));
    check(
        "syslog numbers",
        r#"{"level":1,"facility":"user","msg":"m"}"#,
        50,
        "m",
        json!({"fields": {"facility": "user", "severity": "alert"}}),
    );
    check(
        "otel",
        r#"{"severity_number":17,"severity_text":"Error","message":"m"}"#,
        40,
        "m",
        json!({"fields": {"severity_text": "Error"}}),
    );
}

#[test]
fn lines_of_logspool_are_read_unchanged() {
    let record = r#"{"time":"2026-09-21T14:13:20.125000001Z","time_ns":1790000000125000001,"level":30,"logger":"a",
        "message":"m","process":7,"thread":18446744073709551615,"fields":{"level":"x","log":"y","fields":{"a":1}}}"#;
    check(
        "logspool",
        record,
        30,
        "m",
        json!({"time_ns": TIME + 1, "logger": "a", "process": 7, "thread": u64::MAX,
        "fields": {"level": "x", "log": "y", "fields": {"a": 1}}}),
    );
}

#[test]
fn numbers_beyond_64_bits_and_invalid_json_keep_their_values() {
    check(
        "big",
        r#"{"msg":"m","a":18446744073709551616,"b":-9223372036854775809,"c":1e300}"#,
        0,
        "m",
        json!({"fields": {"a": "18446744073709551616", "b": "-9223372036854775809", "c": 1e300}}),
    );
    check(
        "nan",
        "\u{FEFF}{\"msg\":\"m\tn\",\"a\":NaN,\"b\":-Infinity,\"c\":1e400,\"d\":\"\\ud800\"}",
        0,
        "m\tn",
        json!({"fields": {"a": "NaN", "b": "-Infinity", "c": "1e400", "d": "\u{FFFD}"}}),
    );
}

#[test]
fn python_records_with_two_times_or_with_extra_fields_are_read() {
    check(
        "python-json-logger",
        r#"{"asctime":"2026-09-21 19:43:20,125","timestamp":"2026-09-21T14:13:20.125+00:00","name":"app","message":"m"}"#,
        0,
        "m",
        json!({"time_ns": TIME, "logger": "app", "fields": {"asctime": "2026-09-21 19:43:20,125"}}),
    );
    check(
        "python-logstash-async",
        r#"{"@timestamp":"2026-09-21T14:13:20.125Z","@version":"1","level":"ERROR","message":"m","pid":7,"extra":
            {"order":7,"line":3,"logger_name":"app","path":"a.py","func_name":"f","stack_trace":"Traceback"}}"#,
        40,
        "m",
        json!({"time_ns": TIME, "logger": "app", "process": 7, "file": "a.py", "line": 3, "function": "f",
            "exception": "Traceback", "fields": {"@version": "1", "order": 7}}),
    );
}
