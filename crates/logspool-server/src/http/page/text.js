// Text of records as elements. It never becomes markup. Characters that would change the display are shown as escapes.

// Control characters, marks that change the writing direction, and line separators: the same as for terminals
// (`visible.rs`).
const ACTS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function written(character) {
  const number = character.codePointAt(0);
  return SHORT[character] ?? (number < 256 ? "\\x" + number.toString(16).padStart(2, "0") : "\\u" + number.toString(16).padStart(4, "0"));
}

/** An element with classes and content: texts, elements, or nothing. */
export function element(name, classes, ...content) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  made.append(...content.filter((part) => part !== undefined && part !== null));
  return made;
}

/** A text whose control characters are shown as marked escapes. */
export function shown(text) {
  const fragment = document.createDocumentFragment();
  let plain = "";
  for (const character of text) {
    if (!ACTS.test(character)) {
      plain += character;
      continue;
    }
    fragment.append(plain, element("span", "acts", written(character)));
    plain = "";
  }
  fragment.append(plain);
  return fragment;
}

/** As `shown`, but keeps line breaks, for tracebacks. */
export function shownLines(text) {
  const fragment = document.createDocumentFragment();
  text.split("\n").forEach((line, at) => {
    // A tab at the beginning of a line is its indentation.
    const indent = line.match(/^\t*/)[0];
    fragment.append(at > 0 ? "\n" : "", "    ".repeat(indent.length), shown(line.slice(indent.length)));
  });
  return fragment;
}

/** A value of JSON as text. */
export function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// Numbers that a double cannot represent keep their digits if the browser supports it.
function exact(key, value, context) {
  const source = context?.source;
  const differs = typeof value === "number" && source !== undefined && String(value) !== source;
  return differs ? (JSON.rawJSON?.(source) ?? source) : value;
}

/** JSON with exact numbers. */
export function parsed(json) {
  return JSON.parse(json, exact);
}

/** A name or a value in the syntax of a query. */
export function quoted(text) {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

const WORD = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u;
const KEYWORDS = new Set(["and", "or", "not"]);

/** A name or a value, quoted if necessary. */
export function asWord(text) {
  return WORD.test(text) && !KEYWORDS.has(text.toLowerCase()) ? text : quoted(text);
}
