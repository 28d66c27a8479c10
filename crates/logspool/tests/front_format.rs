//! The text of a record is what `format!` makes of the same arguments.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use logspool::front::{self, debug, display};
use logspool::pipeline::Options;

/// Logs each call, and returns what `format!` makes of it.
macro_rules! both {
    ($(($text:literal $(, $argument:expr)*);)+) => {
        vec![$({
            logspool::info!($text $(, $argument)*);
            ($text, format!($text $(, $argument)*))
        }),+]
    };
}

fn numbers() -> Vec<(&'static str, String)> {
    both! {
        ("{}", 0); ("{}", -1); ("{:5}|", 42); ("{:<5}|", 42); ("{:^5}|", 42); ("{:>5}|", -42); ("{:05}|", -42);
        ("{:+}", 7); ("{:+05}", 7); ("{:*^9}|", 7); ("{:1$}|", 7, 5); ("{:x}", 255); ("{:X}", 255); ("{:#x}", 255);
        ("{:#010x}", 255); ("{:o}", 8); ("{:#o}", 8); ("{:b}", 5); ("{:#b}", 5); ("{:08b}", 5_u8);
        ("{:x}", -1_i8); ("{:x}", -1_i16); ("{:x}", -1_i32); ("{:x}", -1_i64); ("{:x}", -1_isize); ("{:x}", -1_i128);
        ("{:X}", i8::MIN); ("{:o}", -8_i16); ("{:b}", -2_i8); ("{:#b}", -2_i8); ("{:#x}", -2_i32); ("{:#06X}", -2_i8);
        ("{:x}", u64::MAX); ("{:x}", u128::MAX); ("{:b}", u8::MAX); ("{:e}", 1234.5); ("{:E}", 0.00012); ("{:e}", 1500);
        ("{}", u64::MAX); ("{}", i64::MIN); ("{}", u128::MAX); ("{}", i128::MIN); ("{:+}", i128::MAX); ("{:?}", -3);
        ("{:#?}", 3); ("{:x?}", 255); ("{:X?}", 255); ("{:#x?}", 255); ("{:x?}", -1_i8); ("{:04?}", 7);
        ("{}", 1.0); ("{}", 0.1); ("{}", 1e21); ("{}", 1e-7); ("{}", 0.1_f32); ("{}", f64::NAN); ("{}", f64::INFINITY);
        ("{}", -0.0); ("{:?}", 1.0); ("{:?}", 1e16); ("{:?}", 1e-5); ("{:?}", 0.1_f32); ("{:#?}", 0.5); ("{:.3}", 2.0);
        ("{:.0}", 2.5); ("{:8.2}|", 1.255); ("{:+.1}", 1.0); ("{:08.3}", -1.5); ("{:.*}", 2, 1.23456); ("{:.1$}", 1.5, 3);
        ("{:?}", f32::MAX); ("{:.2?}", 1.0); ("{:5}|", f64::NAN); ("{:05}|", f64::INFINITY); ("{:.2e}", 12345.678);
    }
}

fn texts() -> Vec<(&'static str, String)> {
    let (text, list, pair) = (String::from("tä\"xt\n"), vec![Some(1), None], ("a", -1));
    let target = 7;
    let reference = &target;
    both! {
        ("{}", "a"); ("{:5}|", "a"); ("{:>5}|", "ä"); ("{:^5}|", "ab"); ("{:-<5}|", "ab"); ("{:.2}", "abc");
        ("{:5.1}|", "abc"); ("{:?}", "a\"b\n\t\\\u{7f}\u{200b}'"); ("{:#?}", "a"); ("{:10?}|", "a"); ("{}", 'x');
        ("{:?}", 'x'); ("{:?}", '\''); ("{:?}", '\n'); ("{:3}|", 'x'); ("{:>3?}|", 'x'); ("{}", true); ("{:?}", false);
        ("{:7}|", true); ("{:>7?}|", true); ("{}", text); ("{:?}", text); ("{}", &text); ("{:?}", Box::new("x"));
        ("{}", Rc::new(3)); ("{:?}", Arc::new("s")); ("{}", Cow::from("c")); ("{1} {0}", 1, 2); ("{0} {0:?}", "a");
        ("{{}}"); ("{{{}}}", 1); ("%s {} %", 1); ("{} {}", 1, "b"); ("{:p}", reference); ("{:p}", 16 as *const u8);
        ("{:#p}", 16 as *const u8); ("{:?}", 16 as *const u8); ("{:20p}|", 16 as *const u8); ("{}", debug(&list));
        ("{:?}", debug(&list)); ("{:#?}", debug(&list)); ("{:?}", debug(&pair)); ("{:>20}|", debug(&pair));
        ("{}", display(&text)); ("{:?}", debug(&text)); ("{:#?}", debug("x")); ("{:?}", debug(5)); ("{:>8}|", display(5));
        ("{:?}", debug(())); ("{:02x?}", debug(&[1, 255])); ("{} {:?} {:x}", debug(&list), debug(&pair), -1_i8);
    }
}

#[test]
fn each_text_equals_that_of_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    front::builder()
        .file(&path)
        .format("%(message)s\u{1}")
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();

    let expected = [numbers(), texts()].concat();
    assert!(front::flush(Duration::from_secs(60)));

    let text = std::fs::read_to_string(&path).unwrap();
    let found: Vec<&str> = text.split_terminator("\u{1}\n").collect();
    assert_eq!(expected.len(), found.len());
    let others: Vec<_> = expected.iter().zip(&found).filter(|((_, expected), found)| expected != *found).collect();
    assert!(others.is_empty(), "format, expected, found: {others:#?}");
}
