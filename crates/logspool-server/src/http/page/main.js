// The page: sends the query of the form to the service and shows the answer. The URL fragment stores the query.

import { draw } from "./histogram.js";
import { Live } from "./live.js";
import { countRow, noteRow, recordRow, removeRow, step } from "./records.js";
import { ErrorAnswer, get, hasToken, lines } from "./service.js";
import { element, parsed } from "./text.js";
import { after, asField, interval, milliseconds, zone } from "./times.js";

const PAGE = 100;
/** Maximum number of rows of a count or histogram, and of records while new ones arrive. */
const ROWS = 1000;
const BARS = 60;
/** The keys of the last line of an answer, which is no row. */
const REMARKS = ["future", "left_out", "warnings"];
/** Milliseconds until an empty service is queried again, and until the bars are redrawn while new records arrive. */
const QUERY_PAUSE = 2000;
const REDRAW_PAUSE = 5000;
const DAY = 86_400_000;

const at = (id) => document.getElementById(id);
let shownRecords = []; // Newest first: `{ time, text, row }`.
let listed = new Set(); // Texts of the records that the last search listed. The live connection may send them again.
let search = new AbortController();
let live = null;
let isPaused = false;
let hasGap = false; // Reconnected while paused: records may have arrived in between.
let wasEmpty = false;
let lookAgain = 0;
let drawAgain = 0;

function queryParameters() {
  const range = at("range").value;
  const times = { q: at("query").value.trim(), level: at("level").value };
  if (range === "between") {
    if (at("from").value) times.since = new Date(at("from").value).toISOString();
    if (at("to").value) times.until = new Date(at("to").value).toISOString();
  } else if (range !== "all") {
    times.since = range;
  }
  return times;
}

function show(id, isShown) {
  at(id).hidden = !isShown;
}

/** Shows an error. The last result stays. Returns true if the service is away. */
function fail(error) {
  if (error.name === "AbortError") return false;
  const isQuery = error instanceof ErrorAnswer && error.status === 400;
  // A browser reports an unreachable service, and one that ends during an answer, as a `TypeError`.
  const isAway = error instanceof TypeError;
  if (isAway) at("error").textContent = "The service cannot be reached. This page asks again by itself.";
  else at("error").textContent = isQuery ? error.message : `cannot query the service: ${error.message}`;
  show("error", true);
  show("remarks", false);
  at("query").setAttribute("aria-invalid", String(isQuery));
  at("state").textContent = keepResult();
  return isAway;
}

/** Marks the shown rows as those of an earlier query. Returns the sentence about them. */
function keepResult() {
  show("older", false);
  const hasRows = !at("records").hidden || !at("counts").hidden;
  at("result").classList.toggle("is-old", hasRows);
  return hasRows ? "The last result is shown below." : "";
}

function clear() {
  shownRecords = [];
  listed = new Set();
  at("rows").replaceChildren();
  at("values").replaceChildren();
  at("result").classList.remove("is-old");
  for (const id of ["error", "empty", "records", "counts", "older", "overview", "remarks"]) show(id, false);
  at("query").removeAttribute("aria-invalid");
}

/** Sends the query of the form. */
async function ask() {
  search.abort();
  search = new AbortController();
  const { signal } = search;
  clearTimeout(lookAgain);
  remember();
  at("state").textContent = "Searching …";
  const parameters = queryParameters();
  try {
    const [found, counted] = await Promise.allSettled([list(parameters, signal, true), overview(parameters, signal)]);
    if (signal.aborted) return;
    if (found.status === "rejected") throw found.reason;
    if (found.value.count > 0) show("overview", found.value.areRecords && counted.status === "fulfilled" && counted.value > 0);
    if (counted.status === "rejected" && found.value.areRecords && found.value.count) fail(counted.reason);
    if (found.value.count === 0) await explainEmpty(signal);
  } catch (error) {
    if (signal.aborted) return;
    failAndRetry(error);
  }
}

/** Shows an error, and asks again if the service is away. */
function failAndRetry(error) {
  if (fail(error)) lookAgain = setTimeout(ask, QUERY_PAUSE);
}

/** Adds rows of an answer to the table. A new answer replaces the old rows with its first row. */
async function list(parameters, signal, isNew) {
  let skip = isNew ? 0 : sameTimeAtEnd();
  // Without a limit the service sends PAGE records, but all rows of a count or histogram.
  const limit = isNew ? undefined : PAGE + skip;
  const answer = await get("/api/query", { ...parameters, limit }, signal);
  if (isNew) {
    show("error", false);
    at("query").removeAttribute("aria-invalid");
  }
  const counts = [];
  let count = 0;
  let leftOut = 0; // Number of older records. `null`: unknown.
  let remarks = [];
  for await (const part of lines(answer)) {
    const rows = document.createDocumentFragment();
    for (const text of part.filter((text) => text !== "")) {
      const row = parsed(text);
      // The last line of an answer that lacks rows, or of a query that is likely wrong.
      if (Object.keys(row).every((key) => REMARKS.includes(key))) {
        leftOut = row.left_out === undefined ? 0 : row.left_out;
        remarks = row.warnings ?? [];
        if (row.future) remarks.push(`${row.future.toLocaleString("en")} matching records are from the future: the clock of a host is ahead (time>now shows them).`);
        continue;
      }
      count += 1;
      // The last line of an interrupted answer.
      if (row.error !== undefined && Object.keys(row).length === 1) throw new ErrorAnswer(503, row.error);
      if (count === 1 && isNew) clear();
      if (row.logger === undefined || row.message === undefined) counts.push(row);
      else if (skip > 0) skip -= 1;
      else {
        listed.add(text);
        rows.append(remembered(row, text, "push"));
      }
    }
    if (signal.aborted) throw signal.reason;
    at("rows").append(rows);
    show("records", shownRecords.length > 0);
  }
  // New records must not be added to the rows of another query.
  if (count === 0 && isNew && live) clear();
  if (count > 0) show("older", leftOut !== 0);
  const number = shownRecords.length;
  const all = leftOut > 0 ? ` of ${(number + leftOut).toLocaleString("en")}` : "";
  const said = `${number}${all} shown, newest first; times in ${zone}`;
  at("state").textContent = counts.length ? showCounts(counts) : count || !isNew ? said : "";
  at("remarks").replaceChildren(...remarks.map((remark) => element("p", "", remark)));
  show("remarks", remarks.length > 0);
  return { count, areRecords: counts.length === 0 };
}

function remembered(record, text, way) {
  const row = recordRow(record);
  shownRecords[way]({ time: record.time, text, row });
  return row;
}

// The next page begins at the oldest shown time. Returns the number of records with this time that are already shown.
function sameTimeAtEnd() {
  const oldest = shownRecords.at(-1).time;
  const earlier = shownRecords.findLastIndex(({ time }) => time !== oldest);
  return shownRecords.length - 1 - earlier;
}

async function older() {
  const { signal } = search;
  const button = at("older");
  button.disabled = true;
  const last = shownRecords.at(-1);
  try {
    await list({ ...queryParameters(), until: after(last.time) }, signal, false);
    // For keyboard users: move the focus to the first new row.
    const first = shownRecords[shownRecords.indexOf(last) + 1];
    if (document.activeElement === document.body || button.hidden) first?.row.querySelector("button").focus({ preventScroll: true });
  } catch (error) {
    fail(error);
  }
  button.disabled = false;
}

/** Shows the rows of a count or histogram. Returns a sentence about them. */
function showCounts(all) {
  // Intervals are ordered from the oldest, values from the most frequent.
  const isHistogram = all[0].time !== undefined; // Times cannot be counted by value.
  const counts = isHistogram ? all.slice(-ROWS) : all.slice(0, ROWS);
  const name = Object.keys(counts[0]).find((key) => key !== "count" || Object.keys(counts[0]).length === 1);
  const most = Math.max(...counts.map(({ count }) => count));
  at("counted").textContent = name;
  at("values").replaceChildren(...counts.map((row) => countRow(name, row[name], row.count, most)));
  show("counts", true);
  const said = `${all.length.toLocaleString("en")} rows`;
  if (counts.length === all.length) return said;
  return `${said}: the ${isHistogram ? "newest" : "most frequent"} ${counts.length.toLocaleString("en")} are shown`;
}

/** Draws the number of records over time. Returns the total. */
async function overview(parameters, signal) {
  const ask = async (length, more = {}) => {
    const answer = await get("/api/histogram", { ...parameters, ...more, interval: length, by: "level" }, signal);
    // Use the service's clock, because it resolves relative times.
    // A row without a time names a damaged file. The list of records shows the reason as well.
    return { rows: (await answer.json()).filter((row) => row.time), now: Date.parse(answer.headers.get("date")) || Date.now() };
  };
  const range = at("range").value;
  const fixed = milliseconds(range);
  let [from, to] = [Date.now() - fixed, Date.now()];
  if (Number.isNaN(fixed)) {
    const days = await ask("1d");
    if (!days.rows.length) return 0;
    [from, to] = [Date.parse(days.rows[0].time), Math.max(Date.parse(days.rows.at(-1).time) + DAY, 0)];
    if (parameters.since) from = Math.max(from, Date.parse(parameters.since));
    to = Math.min(to, parameters.until ? Date.parse(parameters.until) : Math.max(days.now, Date.parse(days.rows.at(-1).time) + 1000));
  }
  // If all records have the same time, leave some space around their bar.
  to = Math.max(to, from + 10_000);
  let length = interval(from, to, BARS);
  let { rows, now } = await ask(length);
  if (signal.aborted) return 0;
  if (!Number.isNaN(fixed)) [from, to] = [now - fixed, now];
  else if (range === "all" && rows.length && rows.at(-1).time !== rows[0].time) {
    // Zoom in if all records are within a short part of a long range.
    const ends = Date.parse(rows.at(-1).time) + milliseconds(length);
    const begins = Date.parse(rows[0].time);
    const closer = interval(begins, ends, BARS);
    if (closer !== length) ({ rows } = await ask(closer));
    [from, to, length] = [begins, ends, closer];
  }
  if (!rows.length) return 0;
  const total = draw(rows, from, to, length);
  at("total").replaceChildren(element("b", "", total.toLocaleString("en")), ` record${total === 1 ? "" : "s"}`);
  return total;
}

/** Explains an empty answer: the store is empty, or no record matches. */
async function explainEmpty(signal) {
  const isEmpty = (await (await get("/api/query", { limit: 1 }, signal)).text()).trim() === "";
  if (signal.aborted) return;
  // The first record arrived between the two queries.
  if (wasEmpty && !isEmpty) {
    wasEmpty = false;
    return ask();
  }
  wasEmpty = isEmpty;
  show("empty", isEmpty);
  at("state").textContent = "";
  if (isEmpty) lookAgain = setTimeout(() => (document.hidden ? explainEmpty(signal).catch(failAndRetry) : ask()), QUERY_PAUSE);
  else {
    const wider = element("button", "", "Search all times");
    wider.addEventListener("click", () => {
      setRange("all");
      ask();
    });
    const isAll = at("range").value === "all";
    const kept = keepResult();
    at("state").replaceChildren(`No matching records. ${kept}`.trim(), ...(isAll || live ? [] : [" ", wider]));
  }
}

function startLive() {
  live?.stop();
  if (at("range").value === "between") setRange("1h");
  const { q, level } = queryParameters();
  const mine = new Live({ q, level }, {
    connected() {
      show("trouble", false);
      if (isPaused) hasGap = true;
      else catchUp(mine);
    },
    isListed: (text) => listed.has(text),
    show(texts, lost, missed) {
      if (live === mine) prepend(texts, lost, missed);
    },
    waiting(count) {
      if (live === mine && isPaused) at("pause").textContent = count > 0 ? `Resume (${count} new)` : "Resume";
    },
    broken(error) {
      at("trouble").textContent = `Live records are interrupted: ${error.message}. Reconnecting …`;
      show("trouble", live === mine);
    },
    failed(error) {
      stopLive();
      fail(error);
    },
  });
  live = mine;
  pause(false);
}

/** Lists the newest records, then shows those that arrived meanwhile. */
async function catchUp(mine) {
  hasGap = false;
  mine.hold();
  await ask();
  mine.dropListed();
  if (live === mine && !isPaused) mine.release();
}

function stopLive() {
  live?.stop();
  live = null;
  pause(false);
  show("trouble", false);
}

function pause(isWanted) {
  isPaused = isWanted && live !== null;
  if (live) at("live").textContent = "Stop";
  else at("live").textContent = "Live";
  at("live").setAttribute("aria-pressed", String(live !== null));
  document.body.classList.toggle("is-live", live !== null && !isPaused);
  show("pause", live !== null);
  at("pause").textContent = isPaused ? "Resume" : "Pause";
  at("pause").setAttribute("aria-pressed", String(isPaused));
}

function prepend(texts, lost, missed) {
  const rows = document.createDocumentFragment();
  for (const text of texts) rows.prepend(remembered(parsed(text), text, "unshift"));
  const left = lost + missed;
  if (left > 0) rows.append(noteRow(`${left.toLocaleString("en")} records arrived faster than this page can show them. Search to see them.`));
  at("rows").prepend(rows);
  for (const { row } of shownRecords.splice(ROWS)) removeRow(row);
  while (at("rows").lastElementChild?.className === "note") at("rows").lastElementChild.remove();
  show("records", shownRecords.length > 0);
  for (const id of ["empty", "counts"]) show(id, false);
  at("state").textContent = `${shownRecords.length} shown, newest first; times in ${zone}`;
  if (Date.now() < drawAgain) return;
  drawAgain = Date.now() + REDRAW_PAUSE;
  overview(queryParameters(), search.signal).then((total) => show("overview", total > 0), () => {});
}

function setRange(range) {
  at("range").value = range;
  show("between", range === "between");
}

function submit() {
  if (live) startLive();
  else ask();
}

/** Stores the query in the URL fragment, so that the URL can be shared. The fragment is never sent to the service. */
function remember() {
  const kept = { q: at("query").value, level: at("level").value, range: at("range").value };
  if (kept.range === "between") Object.assign(kept, { from: at("from").value, to: at("to").value });
  const given = new URLSearchParams(Object.entries(kept).filter(([, value]) => value !== ""));
  history.replaceState(null, "", `#${given}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  for (const [id, name] of [["query", "q"], ["level", "level"], ["from", "from"], ["to", "to"]]) at(id).value = kept.get(name) ?? "";
  setRange(kept.get("range") ?? "1h");
  // The URL was edited by hand and has a value that is not in the list.
  if (at("range").selectedIndex < 0) setRange("1h");
  if (at("level").selectedIndex < 0) at("level").value = "";
}

async function nameFields() {
  const { fields, extra } = await (await get("/api/fields")).json();
  at("fields").textContent = [...fields, ...extra].join(", ");
}

function showExamples() {
  const token = hasToken() ? ' -H "Authorization: Bearer TOKEN"' : "";
  at("curl").textContent = `curl -H "Content-Type: application/json"${token} \\\n  -d '{"message": "hello", "level": "info"}' ${location.origin}/ingest`;
  at("python").textContent = `import logging.handlers\nlog = logging.getLogger("first")\nlog.addHandler(logging.handlers.SocketHandler("${location.hostname}", 9020))\nlog.warning("hello %s", "logspool")`;
}

at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
for (const id of ["level", "from", "to"]) at(id).addEventListener("change", submit);
at("range").addEventListener("change", () => {
  const range = at("range").value;
  setRange(range);
  if (range !== "between") return submit();
  if (live) stopLive();
  at("from").value ||= asField(Date.now() - 3_600_000);
  at("to").value ||= asField(Date.now());
  ask();
});
at("older").addEventListener("click", older);
at("live").addEventListener("click", () => {
  if (live) stopLive();
  else startLive();
});
at("pause").addEventListener("click", () => {
  pause(!isPaused);
  if (isPaused) live.hold();
  else if (hasGap) catchUp(live);
  else live.release();
});
at("help").addEventListener("toggle", () => at("help").open && nameFields().catch(fail));
document.addEventListener("narrow", ({ detail }) => {
  const query = at("query").value.trim();
  at("query").value = query === "" ? detail : /\bor\b/i.test(query) ? `(${query}) ${detail}` : `${query} ${detail}`;
  submit();
});
document.addEventListener("between", ({ detail }) => {
  if (live) stopLive();
  at("from").value = asField(detail.from);
  at("to").value = asField(detail.to);
  setRange("between");
  ask();
});
document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const isWriting = target.matches("input, select, dialog *");
  if (key === "/" && !isWriting) {
    event.preventDefault();
    at("query").select();
  } else if ((key === "ArrowDown" || key === "ArrowUp") && (!isWriting || (target === at("query") && key === "ArrowDown"))) {
    const from = target.matches("button.time") ? target : null;
    if ((from || target === at("query")) && step(from, key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  }
});
document.addEventListener("busy", ({ detail }) => {
  at("busy").textContent = detail;
  show("busy", detail !== "");
});
addEventListener("hashchange", () => {
  recall();
  submit();
});

recall();
showExamples();
ask().then(showExamples);
