// Times. The service writes nanoseconds in UTC; the page shows them in the local time zone.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LENGTHS = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** Converts a duration such as 15m to milliseconds. */
export function milliseconds(length) {
  return parseInt(length, 10) * LENGTHS[length.at(-1)];
}

// Usual interval lengths.
const INTERVALS = ["1s", "5s", "10s", "30s", "1m", "5m", "10m", "30m", "1h", "3h", "6h", "12h", "1d", "7d", "30d"];

/** The shortest interval with at most `most` of them between two times. */
export function interval(from, to, most) {
  return INTERVALS.find((length) => (to - from) / milliseconds(length) <= most) ?? INTERVALS.at(-1);
}

/** The nanosecond after a time of the service, for `until`, which is exclusive. */
export function after(time) {
  const [, seconds, digits] = time.match(/^(.*?)(?:\.(\d+))?Z$/);
  const next = BigInt((digits ?? "").padEnd(9, "0")) + 1n;
  if (next < 1_000_000_000n) return `${seconds}.${String(next).padStart(9, "0")}Z`;
  return new Date(Date.parse(seconds + "Z") + SECOND).toISOString();
}

const clock = new Intl.DateTimeFormat("en-CA", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, hourCycle: "h23" });
const short = new Intl.DateTimeFormat("en-CA", { hour: "2-digit", minute: "2-digit", hour12: false, hourCycle: "h23" });
const date = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });
const dayOnly = new Intl.DateTimeFormat("en-CA", { month: "2-digit", day: "2-digit" });

/** Day and time in the local time zone, with milliseconds. */
export function local(time) {
  const at = new Date(time);
  const fraction = String(at.getMilliseconds()).padStart(3, "0");
  return { day: date.format(at), clock: `${clock.format(at)}.${fraction}` };
}

/** The label below a bar: the time, or the day for long intervals. */
export function label(at, length) {
  if (length >= DAY) return dayOnly.format(at);
  return length < MINUTE ? clock.format(at) : short.format(at);
}

/** A time as text for people. */
export function moment(at) {
  return `${date.format(at)} ${clock.format(at)}`;
}

/** A time as the value of a form field: in the local time zone, to the second. */
export function asField(at) {
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * MINUTE);
  return shifted.toISOString().slice(0, 19);
}

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
