// Requests to the service. They send the token if the service requires one. Answers are read as they arrive.

const TOKEN_KEY = "logspool-token";
/** Number of attempts while the service has no room for a query. */
const TRIES = 10;
let tokenDialog; // One dialog for all requests that need a token at the same time.

/** An error answer of the service. */
export class ErrorAnswer extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

function askForToken(why) {
  const dialog = document.getElementById("asking");
  document.getElementById("asking-why").textContent = why;
  tokenDialog ??= new Promise((resolve) => {
    // The dialog cannot be closed without a token: nothing on this page works without one.
    dialog.oncancel = (event) => event.preventDefault();
    document.getElementById("token-form").onsubmit = () => {
      sessionStorage.setItem(TOKEN_KEY, document.getElementById("token").value.trim());
      document.getElementById("token").value = "";
      tokenDialog = undefined;
      resolve();
    };
    dialog.showModal();
  });
  return tokenDialog;
}

async function why(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || answer.statusText;
  }
}

/** Waits until a busy service accepts another attempt, and shows a message meanwhile. */
async function waitForRoom(answer, signal) {
  const seconds = Number(answer.headers.get("retry-after")) || 1;
  const reason = await why(answer);
  document.dispatchEvent(new CustomEvent("busy", { detail: `The service is busy: ${reason}. Retrying …` }));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  document.dispatchEvent(new CustomEvent("busy", { detail: "" }));
  signal?.throwIfAborted();
}

/** The answer to a GET. Asks the user for a token if the service requires one, and retries while it is busy. */
export async function get(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  for (let tries = 1; ; tries += 1) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch(query ? `${path}?${query}` : path, { headers, signal, cache: "no-store" });
    if (answer.ok) return answer;
    if (answer.status === 429 && tries < TRIES) {
      await waitForRoom(answer, signal);
      continue;
    }
    if (answer.status !== 401) throw new ErrorAnswer(answer.status, await why(answer));
    // Another request may have set a token meanwhile.
    if (token === sessionStorage.getItem(TOKEN_KEY)) await askForToken(token ? "The service does not accept this token." : "");
  }
}

/** True if the user has entered a token. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

/** The lines of an answer, in groups as they arrive. */
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

/** Server-sent events, in groups as they arrive: `{ event, data }`. (`EventSource` cannot send a token.) */
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
