// New records as they arrive: follows `/api/tail`, reconnects when it ends, and buffers a limited number of records.

import { ErrorAnswer, events, get } from "./service.js";

/** Maximum number of buffered records while they cannot be shown. The oldest are dropped first. */
const MAX_BUFFERED = 500;
/** Milliseconds between attempts to connect: first and longest pause. */
const RETRY_PAUSES = [500, 8000];

export class Live {
  #stop = new AbortController();
  #held = [];
  #lost = 0;
  #missed = 0;
  #isDue = false;
  #isHeld = true;

  /**
   * Follows a query and calls these functions of the page:
   * - `connected()`: for each connection, before its records are shown.
   * - `isListed(text)`: for each record; returns true if a search already lists the record, so that it is not new.
   * - `waiting(count)`: number of new records that are not shown yet.
   * - `show(texts, lost, missed)`: new records as JSON, the number of records dropped here, and the number that the
   *   service could not send in time.
   * - `broken(error)`: the connection ended and is retried. `failed(error)`: it is not retried.
   */
  constructor(parameters, page) {
    this.page = page;
    this.#follow(parameters);
  }

  async #follow(parameters) {
    const signal = this.#stop.signal;
    let wait = RETRY_PAUSES[0];
    while (!signal.aborted) {
      try {
        const answer = await get("/api/tail", parameters, signal);
        this.page.connected();
        wait = RETRY_PAUSES[0];
        for await (const part of events(answer)) this.#take(part);
        this.page.broken(new Error("the service ended the connection"));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ErrorAnswer && error.status === 400) return this.page.failed(error);
        this.page.broken(error);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(2 * wait, RETRY_PAUSES[1]);
    }
  }

  #take(part) {
    for (const { event, data } of part) {
      if (event === "missed") this.#missed += Number(data);
      else this.#held.push(data);
    }
    this.dropListed();
    if (this.#held.length > MAX_BUFFERED) this.#lost += this.#held.splice(0, this.#held.length - MAX_BUFFERED).length;
    this.#plan();
  }

  /** Drops records that a search already lists, and reports the number of waiting ones. */
  dropListed() {
    this.#held = this.#held.filter((text) => !this.page.isListed(text));
    this.page.waiting(this.#held.length + this.#lost);
  }

  #plan() {
    if (this.#isDue || this.#isHeld || this.#held.length + this.#missed === 0) return;
    this.#isDue = true;
    // Once per animation frame; a tab in the background has no frames.
    const plan = document.hidden ? (run) => setTimeout(run, 500) : requestAnimationFrame;
    plan(() => {
      this.#isDue = false;
      if (this.#isHeld || this.#stop.signal.aborted) return;
      const [held, lost, missed] = [this.#held, this.#lost, this.#missed];
      [this.#held, this.#lost, this.#missed] = [[], 0, 0];
      this.page.show(held, lost, missed);
    });
  }

  /** Buffers new records until `release`. */
  hold() {
    this.#isHeld = true;
  }

  /** Shows buffered and new records. */
  release() {
    this.#isHeld = false;
    this.#plan();
  }

  /** Ends the connection. */
  stop() {
    this.#stop.abort();
  }
}
