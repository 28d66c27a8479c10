// Records as rows of a table. A row can be opened to show the whole record.

import { asText, asWord, element, quoted, shown, shownLines } from "./text.js";
import { local } from "./times.js";

const NAMES = { 10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL" };
export const LEVELS = [50, 40, 30, 20, 10];

/** Maximum number of characters of a message in its row. The opened row shows the whole message. */
const MESSAGE = 1000;

// Fields in the order in which they are shown. `process` is called `pid` in a query.
const KNOWN = ["time", "arrived", "level", "logger", "host", "process", "process_name", "thread", "thread_name", "task", "file", "line",
  "function", "trace_id", "span_id"];
const LONG = ["message", "exception", "stack"];

/** The name of a level. */
export function levelName(level) {
  return NAMES[level] ?? String(level);
}

/** The CSS class of a level: that of the next named level at or below it. */
export function levelClass(level) {
  return "level-" + (NAMES[LEVELS.find((named) => named <= level) ?? 10].toLowerCase());
}

// A button that adds a condition to the query.
function narrow(sign, label, text) {
  const button = element("button", "narrow", sign);
  button.type = "button";
  button.title = button.ariaLabel = label;
  button.addEventListener("click", () => button.dispatchEvent(new CustomEvent("narrow", { bubbles: true, detail: text })));
  return button;
}

function line(name, value, canNarrow) {
  const cell = element("dd", "", element("span", "", shownLines(asText(value))));
  if (canNarrow) {
    const field = asWord(name === "process" ? "pid" : name);
    const written = typeof value === "string" ? quoted(value) : asText(value);
    cell.append(" ", narrow("=", `only records with this ${name}`, `${field}=${written}`));
    cell.append(" ", narrow("≠", `leave out records with this ${name}`, `${field}!=${written}`));
  }
  return [element("dt", "", shown(name)), cell];
}

function details(record) {
  const list = element("dl");
  for (const name of KNOWN) {
    if (record[name] !== undefined) list.append(...line(name, record[name], name !== "time"));
  }
  for (const [name, value] of Object.entries(record.fields ?? {})) {
    const isPlain = value === null || typeof value !== "object" || JSON.isRawJSON?.(value);
    list.append(...line(name, value, isPlain && name !== "" && !KNOWN.includes(name) && !LONG.includes(name)));
  }
  const long = LONG.filter((name) => record[name]).flatMap((name) =>
    [element("h3", "", name), element("pre", "", shownLines(record[name]))]);
  const cell = element("td", "", ...long, list);
  cell.colSpan = 4;
  return element("tr", "details", cell);
}

function toggle(row, record, button) {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  row.classList.toggle("open", !isOpen);
  if (isOpen) row.nextElementSibling.remove();
  else row.after(details(record));
}

/** The row of a record. */
export function recordRow(record) {
  const { day, clock } = local(record.time);
  const button = element("button", "time", element("span", "day", day), " ", clock);
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.title = record.time;
  const message = record.message.length > MESSAGE ? record.message.slice(0, MESSAGE) + " …" : record.message;
  const more = record.exception ? element("span", "more", shown(record.exception.trimEnd().split("\n").at(-1).slice(0, MESSAGE))) : null;
  const row = element("tr", `record ${levelClass(record.level)}`,
    element("td", "", button),
    element("td", "level", levelName(record.level)),
    element("td", "logger", shown(record.logger)),
    element("td", "message", element("div", "", shown(message)), more));
  row.addEventListener("click", () => {
    // Do not open or close a row while the user selects text.
    if (getSelection().isCollapsed) toggle(row, record, button);
  });
  return row;
}

/** Removes a row and its details. */
export function removeRow(row) {
  if (row.nextElementSibling?.classList.contains("details")) row.nextElementSibling.remove();
  row.remove();
}

/** A row with a remark. */
export function noteRow(text) {
  const cell = element("td", "", text);
  cell.colSpan = 4;
  return element("tr", "note", cell);
}

/** Moves the focus to the next or the previous record. */
export function step(from, direction) {
  const all = [...document.querySelectorAll("#rows button.time")];
  const next = all[from ? all.indexOf(from) + direction : 0];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return next !== undefined;
}

/** The row of a counted value. */
export function countRow(name, value, count, most) {
  const bar = element("span", "bar");
  bar.style.width = `${Math.max(1, (100 * count) / most)}%`;
  const text = value === null ? element("i", "", "without") : shown(name === "time" ? local(value).day + " " + local(value).clock.slice(0, 8)
    : name === "level" ? levelName(Number(value)) : asText(value));
  return element("tr", "", element("td", "", text), element("td", "number", element("span", "", count.toLocaleString("en")), bar));
}
