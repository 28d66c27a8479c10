//! Random values are shown as `format!` shows them, by each format string of a table.
//!
//! Format strings of Rust are literals, so a macro makes the table. `LOGSPOOL_FORMAT_CASES` is the number of cases,
//! and `LOGSPOOL_SEED` the seed.

use crate::support;

use logspool_record::Encoder;
use logspool_record::definition::Grammar;
use logspool_record::format::{ArgumentType, TypedArgument, check};

use support::Random;

/// Cases of `make test-rust`.
const CASES: usize = if cfg!(miri) { 300 } else { 200_000 };

/// A type whose values a record holds.
trait Shown: Copy {
    fn random(random: &mut Random) -> Self;
    fn encode(&self, encoder: &mut Encoder);
    const KIND: ArgumentType;
}

impl Shown for i64 {
    fn random(random: &mut Random) -> Self {
        match random.below(4) {
            0 => random.below(300) as i64 - 150,
            1 => [0, 1, -1, 9, 10, 99, 100, 1250, 1350, i64::MAX, i64::MIN][random.below(11)],
            _ => random.next() as i64 >> random.below(64),
        }
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.int(*self);
    }

    const KIND: ArgumentType = ArgumentType::Int;
}

impl Shown for u64 {
    fn random(random: &mut Random) -> Self {
        random.next() >> random.below(64)
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.uint(*self);
    }

    const KIND: ArgumentType = ArgumentType::Uint;
}

impl Shown for i128 {
    /// Only values that 64 bits do not hold: a record does not keep the size of an integer.
    fn random(random: &mut Random) -> Self {
        let high = i128::from(random.next() as i64 >> random.below(60)) & !4 | 2;
        high << 64 | i128::from(random.next())
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.int128(*self);
    }

    const KIND: ArgumentType = ArgumentType::Int;
}

impl Shown for u128 {
    fn random(random: &mut Random) -> Self {
        (u128::from(random.next()) << 64 | u128::from(random.next())) >> random.below(128)
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.uint128(*self);
    }

    const KIND: ArgumentType = ArgumentType::Uint;
}

impl Shown for f64 {
    fn random(random: &mut Random) -> Self {
        match random.below(8) {
            0 => [0.0, -0.0, 1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324][random.below(8)],
            1 => [0.5, 1.5, 2.5, 0.125, 9.5, 1e15, 1e16, 1e17, 1e-5, f64::MAX][random.below(10)],
            2 => f64::from_bits(random.next()),
            3 => i64::random(random) as f64,
            4 => (random.next() >> 40) as f64 / 8.0,
            5 => 10_f64.powi(random.below(40) as i32 - 20),
            _ => (i64::random(random) >> 20) as f64 / 1000.0,
        }
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.float(*self);
    }

    const KIND: ArgumentType = ArgumentType::Float;
}

impl Shown for f32 {
    fn random(random: &mut Random) -> Self {
        if random.below(2) == 0 { f32::from_bits(random.next() as u32) } else { f64::random(random) as f32 }
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.float32(*self);
    }

    const KIND: ArgumentType = ArgumentType::Float32;
}

impl Shown for bool {
    fn random(random: &mut Random) -> Self {
        random.below(2) == 0
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.bool(*self);
    }

    const KIND: ArgumentType = ArgumentType::Bool;
}

impl Shown for char {
    fn random(random: &mut Random) -> Self {
        match random.below(3) {
            0 => ['\0', '\n', '\'', '"', '\\', 'é', '漢', '😀', '\u{301}', '\u{200b}'][random.below(10)],
            1 => char::from(random.below(128) as u8),
            _ => char::from_u32(random.next() as u32 % 0x11_0000).unwrap_or('x'),
        }
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.char(*self);
    }

    const KIND: ArgumentType = ArgumentType::Char;
}

impl Shown for &'static str {
    fn random(random: &mut Random) -> Self {
        ["", "a", "user", "é", "漢字 text", "a\"b'c\\", "line\nline\t\0", "\u{301}combining a\u{301}", "😀", "{}"]
            [random.below(10)]
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.str(self);
    }

    const KIND: ArgumentType = ArgumentType::Text;
}

impl Shown for *const u8 {
    fn random(random: &mut Random) -> Self {
        std::ptr::without_provenance(u64::random(random) as usize)
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.pointer(self.addr() as u64);
    }

    const KIND: ArgumentType = ArgumentType::Pointer;
}

impl Shown for &'static [u8] {
    fn random(random: &mut Random) -> Self {
        [&b""[..], b"a", b"\xff\x00\n"][random.below(3)]
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw_bytes(self);
    }

    const KIND: ArgumentType = ArgumentType::Bytes;
}

impl<A: Shown, B: Shown> Shown for (A, B) {
    fn random(random: &mut Random) -> Self {
        (A::random(random), B::random(random))
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(2);
        self.0.encode(encoder);
        self.1.encode(encoder);
    }

    const KIND: ArgumentType = ArgumentType::Tuple;
}

impl<A: Shown> Shown for (A,) {
    fn random(random: &mut Random) -> Self {
        (A::random(random),)
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(1);
        self.0.encode(encoder);
    }

    const KIND: ArgumentType = ArgumentType::Tuple;
}

/// The text of a record, and the check of its template.
fn shown(template: &str, named: &Encoder, positional: &Encoder, arguments: &[TypedArgument<'_>]) -> String {
    if let Err(error) = check(Grammar::Rust, template, arguments) {
        panic!("{template}: {error}");
    }
    let bytes = [&named.bytes[..], &positional.bytes].concat();
    let (text, complete) = support::message(Grammar::Rust, template, &bytes);
    assert!(complete, "{template}: {text}");
    text
}

/// Counts the cases of a run and their differences.
struct Run {
    random: Random,
    cases: usize,
    differences: usize,
}

impl Run {
    fn compare<T: Shown>(&mut self, template: &str, format: impl Fn(T) -> String) {
        let value = T::random(&mut self.random);
        let mut encoder = Encoder::new();
        value.encode(&mut encoder);
        let ours = shown(template, &Encoder::new(), &encoder, &[TypedArgument::unnamed(T::KIND)]);
        self.note(template, &format(value), &ours);
    }

    /// A value with a width and a precision among the arguments.
    fn compare_amounts<T: Shown>(&mut self, template: &str, order: &str, format: impl Fn(T, usize, usize) -> String) {
        let value = T::random(&mut self.random);
        let (width, precision) = (self.random.below(30), self.random.below(20));
        let (mut named, mut positional) = (Encoder::new(), Encoder::new());
        let mut arguments = Vec::new();
        for part in order.chars() {
            let kind = if part == 'v' { T::KIND } else { ArgumentType::Int };
            let name = [("W", "w"), ("P", "p")].into_iter().find(|(upper, _)| upper.starts_with(part));
            let encoder = if name.is_some() { &mut named } else { &mut positional };
            if let Some((_, name)) = name {
                encoder.field(name);
            }
            match part.to_ascii_lowercase() {
                'v' => value.encode(encoder),
                'w' => drop(encoder.int(width as i64).bytes.len()),
                _ => drop(encoder.int(precision as i64).bytes.len()),
            }
            arguments.push(TypedArgument { name: name.map(|(_, name)| name), kind });
        }
        let ours = shown(template, &named, &positional, &arguments);
        self.note(template, &format(value, width, precision), &ours);
    }

    fn note(&mut self, template: &str, theirs: &str, ours: &str) {
        self.cases += 1;
        if theirs != ours {
            self.differences += 1;
            if self.differences <= 20 {
                println!("{template}: shown as {ours:?}, not as {theirs:?}");
            }
        }
    }
}

macro_rules! compare {
    ($run:expr, $($type:ty),+: $templates:tt) => {
        $(compare!(@type $run, $type, $templates);)+
    };
    (@type $run:expr, $type:ty, [$($template:literal),+ $(,)?]) => {
        $($run.compare::<$type>($template, |value| format!($template, value));)+
    };
}

macro_rules! compare_amounts {
    ($run:expr, $($type:ty),+) => {
        $(
            $run.compare_amounts::<$type>("{:.*}", "pv", |v, _, p| format!("{:.*}", p, v));
            $run.compare_amounts::<$type>("{:*^+2$.*}", "pvw", |v, w, p| format!("{:*^+2$.*}", p, v, w));
            $run.compare_amounts::<$type>("{:>w$.p$}", "vWP", |v, w, p| format!("{:>w$.p$}", v, w = w, p = p));
            $run.compare_amounts::<$type>("{0:<1$}", "vw", |v, w, _| format!("{0:<1$}", v, w));
            $run.compare_amounts::<$type>("{1:00$.2$?}", "wvp", |v, w, p| format!("{1:00$.2$?}", w, v, p));
            $run.compare_amounts::<$type>("{} {w} {0:p$?}", "vWP", |v, w, p| format!("{} {w} {0:p$?}", v));
        )+
    };
}

#[test]
fn random_values_are_shown_as_rust_shows_them() {
    let (total, seed) = support::cases_and_seed(CASES);
    let mut run = Run { random: Random(seed), cases: 0, differences: 0 };
    while run.cases < total {
        compare!(run, i64, u64, i128, u128: [
            "{}", "{:?}", "{:#?}", "{:x}", "{:X}", "{:o}", "{:b}", "{:e}", "{:E}", "{:#x}", "{:#X}", "{:#o}", "{:#b}",
            "{:08x}", "{:#010x}", "{:+}", "{:+08}", "{:>8}", "{:<8}", "{:^8}", "{:*^+9}", "{:é>24}", "{:08}", "{:<08}",
            "{:.3}", "{:.2e}", "{:x?}", "{:#X?}", "{:+012.1e}", "{:-5}", "a {{{:4}}} b", "{0} {0:#b}", "{:#06x?}",
            "{ }", "{: }", "{: ^5 }", "{:.0E}", "{:+x}", "{:}>4}", "{:{^6}", "{:<<4}",
        ]);
        compare!(run, f64, f32: [
            "{}", "{:?}", "{:#?}", "{:e}", "{:E}", "{:.3}", "{:.0}", "{:.1}", "{:.17}", "{:+.2}", "{:>8.3}", "{:<9.2}|",
            "{:^+12.1}", "{:08.2}", "{:+09}", "{:012e}", "{:.3e}", "{:.0E}", "{:.2?}", "{:+?}", "{:10?}", "{:<010.3}",
            "{:*>20}", "{:x?}", "{:#}", "{:.40}", "{:-}", "{0:?} {0}", "{:_^12.2e}",
        ]);
        compare!(run, bool, char, &'static str: [
            "{}", "{:?}", "{:#?}", "{:5}", "{:>5}", "{:^6}", "{:*<7}", "{:05}", "{:.1}", "{:6.2}", "{:é^9.3}", "{:+}",
            "{:#}", "{0} {0:?}", "{{}}{:.0}", "{:>}", "x {:2}",
        ]);
        compare!(run, *const u8: [
            "{:p}", "{:#p}", "{:?}", "{:#?}", "{:20p}", "{:<20p}", "{:020p}", "{:*^24p}", "{:#24p}", "{:24?}", "{:+p}",
        ]);
        compare!(run, &'static [u8], (i64,), (i64, &'static str), (f64, char), (bool, (f32,)), (u128, &'static [u8]):
            ["{:?}", "{:#?}", "a {0:?} {0:#?}"]);
        compare!(run, (i64, u64), ((i64,), &'static str): ["{:x?}", "{:#x?}", "{:X?}"]);
        compare_amounts!(run, i64, u128, f64, f32, &'static str, bool);
    }
    println!("{} cases: {} differences from format! (seed {seed})", run.cases, run.differences);
    assert_eq!(0, run.differences);
}
