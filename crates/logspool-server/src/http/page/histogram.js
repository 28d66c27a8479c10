// The number of records over time, by level, as bars. A click on a bar restricts the query to its time.

import { element } from "./text.js";
import { LEVELS, levelClass, levelName } from "./records.js";
import { label, milliseconds, moment } from "./times.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [1000, 100];

function shape(name, attributes, ...content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

function number(count) {
  return count.toLocaleString("en");
}

/** Draws rows of `/api/histogram?by=level` between two times; returns the total number of records. */
export function draw(rows, from, to, length) {
  const step = milliseconds(length);
  const first = Math.floor(from / step) * step;
  const columns = Math.max(1, Math.ceil((to - first) / step));
  const counts = Array.from({ length: columns }, () => new Map());
  const sums = new Map();
  for (const { time, level, count } of rows) {
    const column = counts[Math.round((Date.parse(time) - first) / step)];
    column?.set(level, (column.get(level) ?? 0) + count);
    sums.set(level, (sums.get(level) ?? 0) + count);
  }
  const sum = (column) => [...column.values()].reduce((all, count) => all + count, 0);
  const most = Math.max(1, ...counts.map(sum));
  const total = [...sums.values()].reduce((all, count) => all + count, 0);
  const summary = LEVELS.filter((level) => sums.has(level)).map((level) => `${number(sums.get(level))} ${levelName(level)}`);
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${number(total)} records from ${moment(from)} to ${moment(to)}: ${summary.join(", ")}` });
  const width = WIDTH / columns;
  counts.forEach((column, at) => svg.append(bar(column, at, width, most, first + at * step, step)));
  const middle = first + Math.floor(columns / 2) * step;
  const times = [first, middle, first + columns * step].map((time) => element("span", "", label(time, step)));
  document.getElementById("chart").replaceChildren(element("span", "most", number(most)), svg, element("p", "times", ...times));
  document.getElementById("legend").replaceChildren(...LEVELS.filter((level) => sums.has(level)).map((level) =>
    element("li", levelClass(level), `${levelName(level)} ${number(sums.get(level))}`)));
  return total;
}

function bar(column, at, width, most, begins, step) {
  const gap = Math.min(2, width / 5);
  const group = shape("g", { class: "column" });
  // The whole height of the column can be clicked, also above a low bar.
  group.append(shape("rect", { class: "ground", x: at * width, y: 0, width, height: HEIGHT }));
  let top = HEIGHT;
  const said = [];
  for (const level of LEVELS.filter((level) => column.has(level))) {
    // The most severe levels are at the bottom. Each part is high enough to be visible.
    const height = Math.max(2, (column.get(level) / most) * HEIGHT);
    top = Math.max(0, top - height);
    group.append(shape("rect", { class: levelClass(level), x: at * width + gap / 2, y: top, width: width - gap, height }));
    said.push(`${levelName(level)} ${number(column.get(level))}`);
  }
  if (said.length) {
    group.append(shape("title", {}, `${moment(begins)}\n${said.join("\n")}`));
    group.addEventListener("click", () => {
      const detail = { from: begins, to: begins + step };
      group.dispatchEvent(new CustomEvent("between", { bubbles: true, detail }));
    });
  }
  return group;
}
