//! One clock per segment: a log call only reads cheap ticks, which are converted to wall time later.
//!
//! Ticks are the TSC if the kernel itself keeps time by it (the TSC is then invariant and synchronous across cores).
//! Otherwise they are CLOCK_MONOTONIC in nanoseconds. An append-only list of calibration points converts ticks to wall
//! time. The last point at or before a record's stamp converts that stamp, and later points never change the result.

use std::sync::atomic::{AtomicU32, Ordering};

/// The counter that stamps records. Its number is in the segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// CLOCK_MONOTONIC, nanoseconds.
    Monotonic = 1,
    /// The processor's time stamp counter.
    Tsc = 2,
}

/// Kind of this process's clock: a [`ClockKind`], or 0 before the first use. All segments of a process use the same
/// clock.
static KIND: AtomicU32 = AtomicU32::new(0);

impl ClockKind {
    /// The kind with this number, which is stored in a segment's header.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Monotonic),
            2 => Some(Self::Tsc),
            _ => None,
        }
    }
}

/// The kind of this process's clock, chosen at the first call.
pub fn kind() -> ClockKind {
    match ClockKind::from_number(KIND.load(Ordering::Relaxed)) {
        Some(kind) => kind,
        None => {
            let kind = detect();
            KIND.store(kind as u32, Ordering::Relaxed);
            kind
        }
    }
}

fn detect() -> ClockKind {
    if cfg!(miri) || !cfg!(target_arch = "x86_64") {
        return ClockKind::Monotonic;
    }
    match std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Ok(name) if name.trim() == "tsc" => ClockKind::Tsc,
        _ => ClockKind::Monotonic,
    }
}

/// The current ticks of this process's clock.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if KIND.load(Ordering::Relaxed) == ClockKind::Tsc as u32 {
        // SAFETY: rdtsc is part of the x86-64 baseline and has no preconditions.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    if KIND.load(Ordering::Relaxed) == 0 {
        kind();
        return ticks();
    }
    monotonic_ns()
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result and both clock ids exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CLOCK_MONOTONIC in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC) as u64
}

/// CLOCK_REALTIME in nanoseconds since the epoch.
#[inline]
pub fn wall_ns() -> i64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// One calibration: at `ticks` the wall clock read `wall_ns`. From this point on a tick lasts `ns_per_tick`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct CalibrationPoint {
    /// Reading of this process's clock, in ticks.
    pub ticks: u64,
    /// Nanoseconds since the epoch at `ticks`.
    pub wall_ns: i64,
    /// Length of a tick in nanoseconds.
    pub ns_per_tick: f64,
}

impl CalibrationPoint {
    /// Wall time of a stamp, in nanoseconds since the epoch.
    #[inline]
    pub fn wall_ns_at(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.ticks) as i64;
        self.wall_ns.wrapping_add((since as f64 * self.ns_per_tick) as i64)
    }
}

/// Index of the point that converts `ticks`: the last point at or before it. For ticks before the first point it is the
/// first.
pub fn point_index(points: &[CalibrationPoint], ticks: u64) -> usize {
    match points.last() {
        Some(last) if last.ticks > ticks => points.partition_point(|point| point.ticks <= ticks).saturating_sub(1),
        _ => points.len().saturating_sub(1),
    }
}

/// Reads the ticks and the wall clock as close together as the machine allows.
fn sample() -> (u64, i64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..4 {
        let before = ticks();
        let wall = wall_ns();
        let after = ticks();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, wall);
        }
    }
    (best.1, best.2)
}

/// Makes the first point. Its rate is accurate to about 0.1 %; later points correct it.
pub fn first_point() -> CalibrationPoint {
    if kind() == ClockKind::Monotonic {
        let (ticks, wall_ns) = sample();
        return CalibrationPoint { ticks, wall_ns, ns_per_tick: 1.0 };
    }
    let (ticks_before, _) = sample();
    let start = monotonic_ns();
    // Chosen: 100 us bound the error of the rate to about 0.1 %. That is 1 us at the next point, which follows after 1
    // ms.
    while monotonic_ns() - start < 100_000 {
        std::hint::spin_loop();
    }
    let elapsed = monotonic_ns() - start;
    let (ticks, wall_ns) = sample();
    CalibrationPoint { ticks, wall_ns, ns_per_tick: elapsed as f64 / (ticks - ticks_before) as f64 }
}

/// Decides when a new point is due, and computes it.
#[derive(Debug)]
pub struct Calibrator {
    anchor_ticks: u64,
    anchor_monotonic: u64,
    last: CalibrationPoint,
    next_check_ns: u64,
    interval_ns: u64,
}

/// First interval between checks. It is multiplied by 4 after each check, up to [`MAX_INTERVAL_NS`].
const FIRST_INTERVAL_NS: u64 = 1_000_000;
/// Longest interval between checks, in nanoseconds.
///
/// Chosen: at a slew of 50 ppm the clock drifts by 50 us in one second, half the resolution that anyone reads in a log.
const MAX_INTERVAL_NS: u64 = 1_000_000_000;
/// Error of a predicted wall time, in nanoseconds, below which no new point is added.
///
/// Chosen: it is far below the millisecond that formats show, and far above the noise of one reading (50 ns).
const TOLERATED_NS: i64 = 5_000;

impl Calibrator {
    /// Starts from a segment's first point.
    pub fn new(first: CalibrationPoint) -> Self {
        let now = monotonic_ns();
        Self {
            anchor_ticks: ticks(),
            anchor_monotonic: now,
            last: first,
            next_check_ns: now + FIRST_INTERVAL_NS,
            interval_ns: FIRST_INTERVAL_NS,
        }
    }

    /// The newest point.
    pub fn last(&self) -> CalibrationPoint {
        self.last
    }

    /// Returns a new point if a check is due and the last point has drifted or the wall clock was stepped.
    pub fn check(&mut self) -> Option<CalibrationPoint> {
        let now = monotonic_ns();
        if now < self.next_check_ns {
            return None;
        }
        self.interval_ns = (self.interval_ns * 4).min(MAX_INTERVAL_NS);
        self.next_check_ns = now + self.interval_ns;
        let (ticks, wall_ns) = sample();
        let error = wall_ns - self.last.wall_ns_at(ticks);
        if error.abs() <= TOLERATED_NS {
            return None;
        }
        let ns_per_tick = match kind() {
            ClockKind::Monotonic => 1.0,
            ClockKind::Tsc if ticks > self.anchor_ticks => {
                (now - self.anchor_monotonic) as f64 / (ticks - self.anchor_ticks) as f64
            }
            ClockKind::Tsc => self.last.ns_per_tick,
        };
        self.last = CalibrationPoint { ticks, wall_ns, ns_per_tick };
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_become_wall_time() {
        let point = first_point();
        let mut calibrator = Calibrator::new(point);
        for _ in 0..20 {
            std::thread::yield_now();
            calibrator.check();
        }
        let before = wall_ns();
        let shown = calibrator.last().wall_ns_at(ticks());
        let after = wall_ns();

        assert!(before - 1_000_000 <= shown && shown <= after + 1_000_000, "{before} <= {shown} <= {after}");
    }

    #[test]
    fn a_stepped_wall_clock_only_adds_a_point() {
        let point = first_point();
        let stepped = CalibrationPoint { wall_ns: point.wall_ns - 3_600_000_000_000, ..point };
        let mut calibrator = Calibrator::new(stepped);
        let added = loop {
            if let Some(added) = calibrator.check() {
                break added;
            }
        };

        assert!((added.wall_ns - wall_ns()).abs() < 1_000_000_000);
        assert_eq!(stepped.wall_ns, stepped.wall_ns_at(stepped.ticks));
    }
}
