//! Random templates and values are shown as the library {fmt} shows them.
//!
//! The reference is Debian's libfmt (package `libfmt-dev`), in a small C++ program that this test compiles. Without
//! the library the test says so and does nothing. `LOGSPOOL_FORMAT_CASES` is the number of cases, and `LOGSPOOL_SEED`
//! the seed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support;

use logspool_record::definition::Grammar;
use logspool_record::format::{ArgumentType, TypedArgument, check};
use logspool_record::{Encoder, Values};

use support::Random;

/// Cases of `make test-rust`: a few seconds.
const CASES: usize = 200_000;

/// Cases that the reference gets at once. The pipe's reader and writer are one thread, so a batch is written by a
/// second thread.
const BATCH: usize = 20_000;

/// Maximum precision that is compared. Where a float has more than 767 digits, {fmt} 9.1 drops some of them or ends the
/// program. The largest double has 309 digits before the point.
const MAX_PRECISION: usize = 767 - 309;

/// Compiles the reference. `None`: the library or a compiler is missing.
fn reference() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fmt_reference/reference.cc");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fmt_reference");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let has_library = Command::new(&compiler)
        .args(["-std=c++17", "-fsyntax-only", "-include", "fmt/args.h", "-x", "c++", "/dev/null"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_library {
        return None;
    }
    let status = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-o"])
        .args([&program, &source])
        .arg("-lfmt")
        .status()
        .expect("the compiler ran a moment ago");
    assert!(status.success(), "the reference program does not compile");
    Some(program)
}

/// Values of each type.
trait RandomValues {
    fn integer(&mut self) -> i64;
    fn double(&mut self) -> f64;
    fn single(&mut self) -> f32;
    fn text(&mut self) -> String;
}

impl RandomValues for Random {
    fn integer(&mut self) -> i64 {
        match self.below(4) {
            0 => self.below(300) as i64 - 20,
            1 => self.pick(&[0, 1, -1, 9, 10, 99, 100, i64::MAX, i64::MIN, 255, 256, -128, 1 << 31, -(1 << 31)]),
            _ => self.next() as i64 >> self.below(64),
        }
    }

    fn double(&mut self) -> f64 {
        match self.below(10) {
            0 => self.pick(&[0.0, -0.0, 1.0, -1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324]),
            1 => self.pick(&[0.5, 1.5, 2.5, 0.125, 9.5, 99.5, 1e15, 1e16, 1e17, 123456.0, 0.0001, 0.00001, f64::MAX]),
            2 => f64::from_bits(self.next()),
            3 => self.integer() as f64,
            4 => (self.next() >> 40) as f64 / 8.0,
            5 => (self.next() >> self.below(64)) as f64 / (1_u64 << self.below(63)) as f64,
            6 => (self.integer() >> 20) as f64 / 1000.0,
            7 => 10_f64.powi(self.below(40) as i32 - 20),
            8 => (self.below(1_000_000) as f64) / 1e6,
            _ => 2_f64.powi(self.below(600) as i32 - 300),
        }
    }

    fn single(&mut self) -> f32 {
        if self.one_in(2) { f32::from_bits(self.next() as u32) } else { self.double() as f32 }
    }

    fn text(&mut self) -> String {
        const CHARACTERS: &[char] = &[
            'a',
            'b',
            'Z',
            ' ',
            '0',
            '{',
            '}',
            '"',
            '\'',
            '\\',
            '\n',
            '\t',
            '\r',
            '\0',
            '\x1b',
            '\x7f',
            'é',
            'ß',
            'я',
            '漢',
            '字',
            '한',
            '☃',
            '€',
            '\u{301}',
            '\u{200b}',
            '\u{ad}',
            '\u{a0}',
            '\u{2028}',
            '\u{e000}',
            '😀',
            '🤖',
            '\u{10ffff}',
            '𝄞',
            '〈',
            '\u{303f}',
        ];
        let ascii = self.one_in(2);
        (0..self.below(9)).map(|_| if ascii { CHARACTERS[self.below(17)] } else { self.pick(CHARACTERS) }).collect()
    }
}

const KINDS: [ArgumentType; 9] = [
    ArgumentType::Int,
    ArgumentType::Float,
    ArgumentType::Text,
    ArgumentType::Float,
    ArgumentType::Float32,
    ArgumentType::Uint,
    ArgumentType::Bool,
    ArgumentType::Char,
    ArgumentType::Pointer,
];

/// Appends a value. Returns its type, which may differ for integers.
fn push_value(random: &mut Random, kind: ArgumentType, encoder: &mut Encoder) -> ArgumentType {
    match kind {
        ArgumentType::Bool => {
            let truth = random.one_in(2);
            encoder.bool(truth);
        }
        ArgumentType::Int if random.one_in(10) => {
            let number = (i128::from(random.next() as i64) << 64 | i128::from(random.next())) >> random.below(64);
            encoder.int128(number);
        }
        ArgumentType::Int => {
            encoder.int(random.integer());
        }
        ArgumentType::Uint if random.one_in(3) => {
            encoder.uint128(u128::MAX - u128::from(random.next() >> random.below(64)));
        }
        ArgumentType::Uint => {
            encoder.uint(random.next() | 1 << 63);
        }
        ArgumentType::Float => {
            encoder.float(random.double());
        }
        ArgumentType::Float32 => {
            encoder.float32(random.single());
        }
        ArgumentType::Char => {
            encoder.char(char::from(random.below(128) as u8));
        }
        ArgumentType::Pointer => {
            encoder.pointer(random.next() >> random.below(64));
        }
        _ => {
            encoder.str(&random.text());
        }
    }
    kind
}

struct Case {
    template: String,
    /// The arguments without a name.
    positional: Encoder,
    named: Encoder,
    arguments: Vec<TypedArgument<'static>>,
}

const NAMES: [&str; 4] = ["a", "user", "_x1", "Long_name"];

fn amount(random: &mut Random) -> usize {
    match random.below(40) {
        0 => random.below(MAX_PRECISION + 1),
        1..8 => random.below(40),
        _ => random.below(14),
    }
}

/// Appends a format spec. Most of its parts fit values of `kind`.
fn push_spec(random: &mut Random, kind: ArgumentType, nested: &mut Vec<i64>, numbers: Option<usize>) -> String {
    let mut spec = String::new();
    let is_wild = random.one_in(12);
    let is_number = matches!(kind, ArgumentType::Int | ArgumentType::Float | ArgumentType::Float32);
    let is_float = matches!(kind, ArgumentType::Float | ArgumentType::Float32);
    let has_zero =
        (is_number || kind == ArgumentType::Uint || kind == ArgumentType::Bool || is_wild) && random.one_in(4);
    if random.one_in(3) {
        if random.one_in(2) {
            let fill = random.pick(&['*', '0', ' ', '<', '-', 'x', ':', 'é', '漢', '😀']);
            // {fmt} writes a damaged fill for these two together.
            if !has_zero || fill.is_ascii() {
                spec.push(fill);
            }
        }
        spec.push(random.pick(&['<', '>', '^']));
    }
    if (is_number || is_wild) && random.one_in(3) {
        spec.push(random.pick(&['+', '-', ' ']));
    }
    if (is_number || kind == ArgumentType::Uint || is_wild) && random.one_in(4) {
        spec.push('#');
    }
    if has_zero {
        spec.push('0');
    }
    let mut push_amount = |random: &mut Random, spec: &mut String| {
        if random.one_in(5) {
            nested.push(if random.one_in(50) { -1 } else { amount(random) as i64 });
            match numbers {
                Some(first) => spec.push_str(&format!("{{{}}}", first + nested.len() - 1)),
                None => spec.push_str("{}"),
            }
        } else {
            spec.push_str(&amount(random).to_string());
        }
    };
    if random.one_in(2) {
        // A width that begins with zero would be the flag.
        let before = spec.len();
        push_amount(random, &mut spec);
        if spec[before..].starts_with('0') {
            spec.truncate(before);
        }
    }
    if (is_float || kind == ArgumentType::Text || is_wild) && random.one_in(2) {
        spec.push('.');
        push_amount(random, &mut spec);
    }
    if random.one_in(2) {
        const ALL: &[char] =
            &['a', 'A', 'b', 'B', 'c', 'd', 'e', 'E', 'f', 'F', 'g', 'G', 'o', 'p', 's', 'x', 'X', '?', 'L', 'n', '%'];
        spec.push(match kind {
            _ if is_wild => random.pick(ALL),
            ArgumentType::Int | ArgumentType::Uint | ArgumentType::Bool => {
                random.pick(&['b', 'B', 'c', 'd', 'd', 'o', 'x', 'X'])
            }
            ArgumentType::Float | ArgumentType::Float32 => random.pick(&['a', 'A', 'e', 'E', 'f', 'F', 'g', 'G', 'f']),
            ArgumentType::Char => random.pick(&['c', 'd', 'x', '?']),
            ArgumentType::Pointer => 'p',
            _ => random.pick(&['s', '?']),
        });
    }
    spec
}

fn case(random: &mut Random) -> Case {
    let mut case =
        Case { template: String::new(), positional: Encoder::new(), named: Encoder::new(), arguments: Vec::new() };
    let has_numbers = random.one_in(4);
    let mut names = 0;
    for _ in 0..1 + random.below(3) {
        case.template.push_str(random.pick(&[
            "",
            " ",
            "x=",
            "{{",
            "}}",
            "é ",
            "{{}} ",
            "did a longer thing with it: ",
        ]));
        let kind = random.pick(&KINDS);
        let is_named = names < NAMES.len() && random.one_in(8);
        let unnamed = case.arguments.iter().filter(|argument| argument.name.is_none()).count();
        let kind = if is_named {
            case.named.field(NAMES[names]);
            push_value(random, kind, &mut case.named)
        } else {
            push_value(random, kind, &mut case.positional)
        };
        let reference = match (is_named, has_numbers) {
            (true, _) => NAMES[names].to_owned(),
            (_, true) => unnamed.to_string(),
            _ => String::new(),
        };
        let argument = TypedArgument { name: is_named.then(|| NAMES[names]), kind };
        names += usize::from(is_named);
        let mut nested = Vec::new();
        let first = unnamed + usize::from(!is_named);
        let spec = if random.one_in(4) {
            String::new()
        } else {
            push_spec(random, kind, &mut nested, has_numbers.then_some(first))
        };
        let colon = if spec.is_empty() && random.one_in(2) { "" } else { ":" };
        case.template.push_str(&format!("{{{reference}{colon}{spec}}}"));
        case.arguments.push(argument);
        for number in nested {
            case.positional.int(number);
            case.arguments.push(TypedArgument::unnamed(ArgumentType::Int));
        }
    }
    case.arguments.sort_by_key(|argument| argument.name.is_some());
    // With names, {fmt} 9.1 reads an argument after the last one, if a template asks for it.
    if names == 0 && random.one_in(12) {
        damage(random, &mut case.template);
    }
    case
}

/// Changes, adds or removes one character.
fn damage(random: &mut Random, template: &mut String) {
    let mut characters: Vec<char> = template.chars().collect();
    let at = random.below(characters.len());
    let other = random.pick(&['{', '}', ':', '.', '0', '9', '#', '+', '<', 'x', 'L', '%', 'a', '-', ' ', '\'']);
    match random.below(3) {
        0 => characters[at] = other,
        1 => characters.insert(at, other),
        _ => drop(characters.remove(at)),
    }
    *template = characters.into_iter().collect();
}

/// Whether the case is outside of what is compared: `}` as a fill, which the C++ standard forbids, damaged fills,
/// precisions that {fmt} does not show, and bytes of two `c` side by side, which may happen to be one character.
fn is_left_out(template: &str) -> bool {
    let has_long_precision = template.split('.').skip(1).any(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().is_ok_and(|precision: usize| precision > MAX_PRECISION)
    });
    has_long_precision
        || template.contains("c}{")
        || template.contains(":}<")
        || template.contains(":}>")
        || template.contains(":}^")
        || ['é', '漢', '😀'].iter().any(|fill| {
            ['<', '>', '^'].iter().any(|align| {
                template
                    .split(&format!("{fill}{align}"))
                    .skip(1)
                    .any(|rest| rest.trim_start_matches(['+', '-', ' ']).trim_start_matches('#').starts_with('0'))
            })
        })
}

/// Shows a case with logspool: whether it is accepted at registration, whether it is complete, and the text.
fn shown(case: &Case) -> (Result<(), String>, bool, String) {
    let accepted = check(Grammar::Fmt, &case.template, &case.arguments).map_err(|error| error.to_string());
    let bytes = [&case.named.bytes[..], &case.positional.bytes].concat();
    let (text, complete) = support::message(Grammar::Fmt, &case.template, &bytes);
    (accepted, complete, text)
}

struct Reference {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Reference {
    fn new(program: &Path) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the reference program starts");
        Self { input: child.stdin.take(), output: child.stdout.take().expect("it is piped"), child }
    }

    /// What {fmt} makes of the cases: whether it formats a case, and the text.
    fn answers(program: &Path, cases: &[Case]) -> Vec<(bool, Vec<u8>)> {
        let mut reference = Self::new(program);
        let mut bytes = Vec::new();
        for case in cases {
            let values = [&case.named.bytes[..], &case.positional.bytes].concat();
            for part in [case.template.as_bytes(), &values] {
                bytes.extend_from_slice(&(part.len() as u32).to_ne_bytes());
                bytes.extend_from_slice(part);
            }
        }
        let mut input = reference.input.take().expect("it is piped");
        let mut answer = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(&bytes).expect("the reference program reads"));
            reference.output.read_to_end(&mut answer).expect("the reference program writes");
        });
        assert!(reference.child.wait().expect("it ran").success());
        let mut rest = &answer[..];
        let mut answers = Vec::new();
        while let [formatted, behind @ ..] = rest {
            let (len, behind) = behind.split_first_chunk::<4>().expect("a length");
            let (text, behind) = behind.split_at(u32::from_ne_bytes(*len) as usize);
            answers.push((*formatted == 1, text.to_vec()));
            rest = behind;
        }
        assert_eq!(cases.len(), answers.len());
        answers
    }
}

/// Returns what is wrong with a case, if anything.
fn difference(case: &Case, formatted: bool, theirs: &[u8]) -> Option<String> {
    let (accepted, complete, ours) = shown(case);
    let theirs = String::from_utf8_lossy(theirs);
    match accepted {
        Err(reason) if formatted => {
            let is_known = ["do not depend on the locale", "above the limit"];
            (!is_known.iter().any(|known| reason.contains(known))).then(|| format!("refused: {reason}, not {theirs:?}"))
        }
        Err(_) => None,
        Ok(()) if !formatted => complete.then(|| format!("shown as {ours:?}, refused by {{fmt}}: {theirs}")),
        Ok(()) => (!complete || ours != theirs).then(|| format!("shown as {ours:?}, not as {theirs:?}")),
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no programs")]
fn random_templates_are_shown_as_fmt_shows_them() {
    let Some(program) = reference() else {
        eprintln!("skipped: no C++ compiler with {{fmt}} is found; install Debian's packages g++ and libfmt-dev");
        return;
    };
    let (total, seed) = support::cases_and_seed(CASES);
    let mut random = Random(seed);
    let (mut done, mut formatted_cases, mut differences) = (0, 0, 0);
    while done < total {
        let cases: Vec<Case> = std::iter::repeat_with(|| case(&mut random))
            .filter(|case| !is_left_out(&case.template))
            .take(BATCH.min(total - done))
            .collect();
        for (case, (formatted, theirs)) in cases.iter().zip(Reference::answers(&program, &cases)) {
            formatted_cases += usize::from(formatted);
            if let Some(difference) = difference(case, formatted, &theirs) {
                differences += 1;
                if differences <= 20 {
                    let values: Vec<_> = Values::new(&case.positional.bytes).collect();
                    println!("{:?} {values:?}: {difference}", case.template);
                }
            }
        }
        done += cases.len();
    }
    println!("{done} cases, {formatted_cases} of them formatted: {differences} differences from {{fmt}} (seed {seed})");
    assert_eq!(0, differences);
    assert!(formatted_cases > done / 2, "most cases shall be formatted");
}
