// Questions to the service: with the token where it wants one, answers as they come.

const KEPT = "logspool-token";
/** How often a service is asked again that has no room for a question. */
const TRIES = 10;
let asked; // One dialog for all questions that want a token at the same time.

/** What the service says is wrong. */
export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

function askForToken(why) {
  const dialog = document.getElementById("asking");
  document.getElementById("asking-why").textContent = why;
  asked ??= new Promise((resolve) => {
    // Closed without one it comes again: nothing on this page works without.
    dialog.oncancel = (event) => event.preventDefault();
    document.getElementById("token-form").onsubmit = () => {
      sessionStorage.setItem(KEPT, document.getElementById("token").value.trim());
      document.getElementById("token").value = "";
      asked = undefined;
      resolve();
    };
    dialog.showModal();
  });
  return asked;
}

async function why(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || answer.statusText;
  }
}

/** Waits until a service without room for a question wants to be asked again, and says so meanwhile. */
async function waitForRoom(answer, signal) {
  const seconds = Number(answer.headers.get("retry-after")) || 1;
  const told = await why(answer);
  document.dispatchEvent(new CustomEvent("busy", { detail: `The service is busy: ${told}. Asking again …` }));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  document.dispatchEvent(new CustomEvent("busy", { detail: "" }));
  signal?.throwIfAborted();
}

/** The answer to a GET; asks the user for a token where the service does, and again where it has no room now. */
export async function get(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  for (let tries = 1; ; tries += 1) {
    const token = sessionStorage.getItem(KEPT);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch(query ? `${path}?${query}` : path, { headers, signal, cache: "no-store" });
    if (answer.ok) return answer;
    if (answer.status === 429 && tries < TRIES) {
      await waitForRoom(answer, signal);
      continue;
    }
    if (answer.status !== 401) throw new Refused(answer.status, await why(answer));
    // Another question may have brought a token meanwhile.
    if (token === sessionStorage.getItem(KEPT)) await askForToken(token ? "The service does not know that token." : "");
  }
}

/** Whether the service wants a token. */
export function hasToken() {
  return sessionStorage.getItem(KEPT) !== null;
}

/** The lines of an answer, in pieces as they come. */
export async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      if (parts.length) yield parts;
    }
    if (rest) yield [rest];
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Server-sent events, in pieces as they come: `{ event, data }`. `EventSource` sends no token. */
export async function* events(answer) {
  let event = "message";
  let data = [];
  for await (const part of lines(answer)) {
    const complete = [];
    for (const line of part) {
      if (line === "" && data.length) complete.push({ event, data: data.join("\n") });
      if (line === "") [event, data] = ["message", []];
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line.startsWith("event:")) event = line.slice(6).trim();
    }
    if (complete.length) yield complete;
  }
}
