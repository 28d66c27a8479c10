//! `Formatter.formatTime`: strftime once per second, milliseconds per record.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). Python calls glibc's `wcsftime` with the tm of `localtime_r`. This
//! file does the same, in the same process with the same time zone and locale. The text of a second is cached until
//! another second is needed. After `tzset` or `setlocale`, the owner of the cache must drop it
//! ([`RenderState::clear`](super::RenderState::clear)).

use std::mem::MaybeUninit;
use std::ops::Range;

use super::directive::{ArgumentKind, Conversion, Directive, RenderedBy};
use super::integer::push_padded;
use super::moment::{RecordTimes, SecondCache, floor_second};
use super::percent;
use super::spec::FormatSpec;
use super::unsupported::Unsupported;
use crate::definition::Zone;
use crate::record::Value;

/// Maximum length of a date format in characters. Chosen: this limits the buffer for one hostile definition to 1 MiB.
const MAX_FORMAT_CHARS: usize = 1024;

/// First size of the buffer for strftime, and its maximum size per character of the format. CPython's `time.strftime`
/// specifies both.
const FIRST_BUFFER_CHARS: usize = 1024;
const MAX_GROWTH: usize = 256;

/// Upper bound of the difference between a time in nanoseconds and its float in seconds, for times that fit `i64`.
///
/// Half the distance between floats up to 2^34 is 2^-20 seconds, which is 954 ns. The milliseconds are computed from the
/// float with an error far below the rest.
const FLOAT_ERROR_NS: i64 = 2_000;

unsafe extern "C" {
    fn wcsftime(
        buffer: *mut libc::wchar_t,
        room: libc::size_t,
        format: *const libc::wchar_t,
        tm: *const libc::tm,
    ) -> libc::size_t;
}

/// A strftime format, with the time zone in which it shows times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The format as wide characters, with a NUL at the end.
    wide: Box<[libc::wchar_t]>,
    zone: Zone,
}

impl Pattern {
    /// Compiles a format as `time.strftime` does.
    ///
    /// # Errors
    ///
    /// [`Unsupported::DateFormat`] for a NUL in the format (Python raises in some versions only) and for a format that
    /// is too long.
    pub fn compile(format: &str, zone: Zone) -> Result<Self, Unsupported> {
        if format.contains('\0') || format.chars().count() > MAX_FORMAT_CHARS {
            return Err(Unsupported::DateFormat);
        }
        Ok(Self { wide: format.chars().chain(['\0']).map(|character| character as libc::wchar_t).collect(), zone })
    }

    /// Appends the text of a second since the epoch. Appends nothing if libc cannot compute a date for it.
    pub fn push(&self, second: i64, out: &mut Vec<u8>) {
        let Some(tm) = broken_down(second, self.zone) else { return };
        let characters = self.wide.len() - 1;
        let mut room = FIRST_BUFFER_CHARS;
        loop {
            let mut buffer = vec![0; room];
            // SAFETY: the buffer has `room` wide characters, `wide` ends with a NUL (see `compile`), and `tm` was
            // filled by libc; its zone name points into libc's tables, which live as long as the process.
            let written = unsafe { wcsftime(buffer.as_mut_ptr(), room, self.wide.as_ptr(), &tm) };
            if written > 0 || room >= MAX_GROWTH * characters {
                push_wide(&buffer[..written.min(room)], out);
                return;
            }
            room *= 2;
        }
    }
}

/// The first directive of a date format that the C library's strftime does not know. It would show it as it is.
pub fn unknown_directive(format: &str) -> Option<&str> {
    const DIRECTIVES: &str = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%+";
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let directive = &rest[at..];
        // A flag, a width, and the letter that asks for another calendar or other digits.
        let after = directive[1..].trim_start_matches(['_', '-', '0', '^', '#']);
        let after = after.trim_start_matches(|character: char| character.is_ascii_digit());
        let after = after.strip_prefix(['E', 'O']).unwrap_or(after);
        match after.chars().next() {
            Some(letter) if DIRECTIVES.contains(letter) => rest = &after[letter.len_utf8()..],
            letter => return Some(&directive[..directive.len() - after.len() + letter.map_or(0, char::len_utf8)]),
        }
    }
    None
}

fn push_wide(wide: &[libc::wchar_t], out: &mut Vec<u8>) {
    for code in wide {
        let character = u32::try_from(*code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn broken_down(second: i64, zone: Zone) -> Option<libc::tm> {
    let mut tm = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call; the _r functions write only through the second one.
    let filled = unsafe {
        match zone {
            Zone::Local => libc::localtime_r(&second, tm.as_mut_ptr()),
            Zone::Utc => libc::gmtime_r(&second, tm.as_mut_ptr()),
        }
    };
    // SAFETY: libc has filled `tm`, because its result is not null.
    (!filled.is_null()).then(|| unsafe { tm.assume_init() })
}

/// `asctime`: the text of the date pattern. Without a `datefmt`, the milliseconds follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AscTime {
    pattern: Pattern,
    millis: Option<Millis>,
}

/// A `default_msec_format`: `before`, the time, `between`, the milliseconds, `after`, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Millis {
    before: Box<str>,
    time: Directive,
    between: Box<str>,
    shape: MillisShape,
    after: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MillisShape {
    /// The milliseconds are formatted by `%03d`.
    ThreeDigits,
    General(Directive),
}

impl AscTime {
    pub(super) fn compile(spec: &FormatSpec) -> Result<Self, Unsupported> {
        let date_format = spec.date_format.as_deref().filter(|format| !format.is_empty());
        let pattern = Pattern::compile(date_format.unwrap_or(&spec.default_time_format), spec.zone)?;
        let msec_format = spec.default_msec_format.as_deref().filter(|format| !format.is_empty());
        let millis = match (date_format, msec_format) {
            (None, Some(format)) => Some(Millis::compile(format)?),
            _ => None,
        };
        Ok(Self { pattern, millis })
    }

    /// Appends the text of a time. Python takes the second from the rounded float, so 0.9999999999 s shows the next
    /// second.
    #[inline]
    pub(super) fn push(&self, time_ns: i64, clock: RecordTimes, cache: &mut SecondCache, out: &mut Vec<u8>) {
        let created = clock.created(time_ns);
        let second = floor_second(created);
        out.extend_from_slice(cache.text(second, |text| self.push_second(second, text)));
        let Some(millis) = &self.millis else { return };
        let msecs = clock.msecs(time_ns, created);
        match &millis.shape {
            MillisShape::ThreeDigits if msecs >= 0.0 => push_three(out, msecs as u64),
            MillisShape::ThreeDigits => push_negative(out, msecs),
            MillisShape::General(directive) => {
                // `compile` accepted only directives that show every finite float.
                let _ = directive.render(Value::Float(msecs), out);
            }
        }
        out.extend_from_slice(millis.after.as_bytes());
    }

    /// Times around `time_ns` that have the same text. Empty if there are none that are certain.
    ///
    /// The text is that of a float. The float of a time that fits `i64` nanoseconds is less than [`FLOAT_ERROR_NS`] off.
    pub(super) fn same_text_around(&self, time_ns: i64) -> Range<i64> {
        let unit = match &self.millis {
            None => 1_000_000_000,
            Some(Millis { shape: MillisShape::ThreeDigits, .. }) => 1_000_000,
            Some(Millis { shape: MillisShape::General(_), .. }) => return 0..0,
        };
        if time_ns < 0 {
            return 0..0;
        }
        let start = time_ns - time_ns % unit;
        let same = start + FLOAT_ERROR_NS..start.saturating_add(unit - FLOAT_ERROR_NS);
        if same.contains(&time_ns) { same } else { 0..0 }
    }

    #[cold]
    fn push_second(&self, second: i64, text: &mut Vec<u8>) {
        let Some(millis) = &self.millis else { return self.pattern.push(second, text) };
        let mut time = Vec::new();
        self.pattern.push(second, &mut time);
        text.extend_from_slice(millis.before.as_bytes());
        let _ = millis.time.render(Value::Str(&String::from_utf8_lossy(&time)), text);
        text.extend_from_slice(millis.between.as_bytes());
    }
}

/// Appends a number that is not negative, as by `%03d`.
#[inline]
fn push_three(out: &mut Vec<u8>, number: u64) {
    if number > 999 {
        return push_padded(out, number, 3);
    }
    let digit = |power: u64| b'0' + (number / power % 10) as u8;
    out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
}

/// Appends a negative number as by `%03d`: the sign is one of the three characters. Times before 1970 have negative
/// milliseconds in float arithmetic.
#[cold]
fn push_negative(out: &mut Vec<u8>, msecs: f64) {
    let whole = msecs.trunc().abs() as u64;
    if whole == 0 {
        return push_padded(out, 0, 3);
    }
    out.push(b'-');
    push_padded(out, whole, 2);
}

impl Millis {
    fn compile(format: &str) -> Result<Self, Unsupported> {
        let parsed = percent::parse(format).ok_or(Unsupported::DateFormat)?;
        let ([before, between, after], [time, millis]) = (&parsed.literals[..], &parsed.directives[..]) else {
            return Err(Unsupported::DateFormat);
        };
        let whole =
            millis.conversion() == Conversion::Decimal && millis.accepts(ArgumentKind::Int) == RenderedBy::Deferred;
        let shows_float = whole || millis.accepts(ArgumentKind::Float) == RenderedBy::Deferred;
        let keyed = time.key().is_some() || millis.key().is_some();
        if keyed || !shows_float || time.accepts(ArgumentKind::Str) != RenderedBy::Deferred {
            return Err(Unsupported::DateFormat);
        }
        let shape = match millis.text() {
            "%03d" => MillisShape::ThreeDigits,
            _ => MillisShape::General(millis.clone()),
        };
        Ok(Self { before: before.clone(), time: time.clone(), between: between.clone(), shape, after: after.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::*;
    use crate::cpython::{CpythonRules, TimeArithmetic};

    fn asctime(spec: &FormatSpec, time_ns: i64) -> String {
        let mut out = Vec::new();
        let asctime = AscTime::compile(spec).expect("supported");
        asctime.push(time_ns, RecordTimes::new(spec), &mut SecondCache::default(), &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    fn utc() -> FormatSpec {
        let mut spec = FormatSpec::text(Style::Percent, "%(asctime)s");
        spec.zone = Zone::Utc;
        spec
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn the_default_time_has_milliseconds_and_a_datefmt_time_has_not() {
        let mut spec = utc();

        assert_eq!("2001-09-09 01:46:40,123", asctime(&spec, 1_000_000_000_123_999_999));
        spec.date_format = Some("%H:%M é".to_owned());
        assert_eq!("01:46 é", asctime(&spec, 1_000_000_000_123_999_999));
        spec.date_format = Some(String::new());
        spec.default_msec_format = Some("<%25s|%07.2f>".to_owned());
        assert_eq!("<      2001-09-09 01:46:40|0123.00>", asctime(&spec, 1_000_000_000_123_999_999));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn the_second_is_taken_from_the_rounded_float() {
        assert_eq!("2023-03-04 07:12:01,000", asctime(&utc(), 1_677_913_920_999_999_900));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn times_before_the_epoch_follow_the_arithmetic_of_the_python_version() {
        let mut spec = utc();

        assert_eq!("1969-12-31 23:59:58,500", asctime(&spec, -1_500_000_000));
        spec.cpython = CpythonRules::of_records(12, TimeArithmetic::FloatWhole);
        assert_eq!("1969-12-31 23:59:58,-500", asctime(&spec, -1_500_000_000));
        assert_eq!("1969-12-31 23:59:58,000", asctime(&spec, -1_000_000_001));
    }

    #[test]
    fn formats_that_do_not_accept_a_text_and_a_float_are_refused() {
        let mut spec = utc();
        for format in ["%s", "%s,%03d%s", "%d,%s", "%s,%c", "%(a)s,%d", "%s %"] {
            spec.default_msec_format = Some(format.to_owned());

            assert_eq!(Err(Unsupported::DateFormat), AscTime::compile(&spec).map(|_| ()), "{format}");
        }
        spec.date_format = Some("a\0b".to_owned());
        assert_eq!(Err(Unsupported::DateFormat), AscTime::compile(&spec).map(|_| ()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn an_empty_pattern_gives_an_empty_text() {
        let mut out = Vec::new();
        Pattern::compile("", Zone::Local).expect("supported").push(0, &mut out);

        assert!(out.is_empty());
    }
}
