// What comes just now: follows `/api/tail`, connects again when it ends, and never holds more than it may.

import { Refused, events, get } from "./service.js";

/** Records that are held while they cannot be shown; of more, the newest. */
const HELD = 500;
/** Milliseconds between attempts to connect: the first, the longest. */
const AGAIN = [500, 8000];

export class Live {
  #stop = new AbortController();
  #held = [];
  #lost = 0;
  #missed = 0;
  #isDue = false;
  #isHeld = true;

  /**
   * Follows a query and tells the page about it:
   * - `connected()`: for each connection, before any of its records is shown.
   * - `isListed(text)`: asked for each record; true if a search already lists it, so that it is not new.
   * - `waiting(count)`: how many new records are not shown yet.
   * - `show(texts, lost, missed)`: new records as JSON, how many more came than are kept, and how many the service could
   *   not send in time.
   * - `broken(error)`: the connection ended and is made again. `failed(error)`: it is not.
   */
  constructor(parameters, told) {
    this.told = told;
    this.#follow(parameters);
  }

  async #follow(parameters) {
    const signal = this.#stop.signal;
    let wait = AGAIN[0];
    while (!signal.aborted) {
      try {
        const answer = await get("/api/tail", parameters, signal);
        this.told.connected();
        wait = AGAIN[0];
        for await (const part of events(answer)) this.#take(part);
        this.told.broken(new Error("the service ended the connection"));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && error.status === 400) return this.told.failed(error);
        this.told.broken(error);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(2 * wait, AGAIN[1]);
    }
  }

  #take(part) {
    for (const { event, data } of part) {
      if (event === "missed") this.#missed += Number(data);
      else this.#held.push(data);
    }
    this.settle();
    if (this.#held.length > HELD) this.#lost += this.#held.splice(0, this.#held.length - HELD).length;
    this.#plan();
  }

  /** Drops records that a search lists by now, and tells how many wait. */
  settle() {
    this.#held = this.#held.filter((text) => !this.told.isListed(text));
    this.told.waiting(this.#held.length + this.#lost);
  }

  #plan() {
    if (this.#isDue || this.#isHeld || this.#held.length + this.#missed === 0) return;
    this.#isDue = true;
    // Once for a frame of the screen; a tab in the background has none.
    const plan = document.hidden ? (run) => setTimeout(run, 500) : requestAnimationFrame;
    plan(() => {
      this.#isDue = false;
      if (this.#isHeld || this.#stop.signal.aborted) return;
      const [held, lost, missed] = [this.#held, this.#lost, this.#missed];
      [this.#held, this.#lost, this.#missed] = [[], 0, 0];
      this.told.show(held, lost, missed);
    });
  }

  /** Keeps what comes. */
  hold() {
    this.#isHeld = true;
  }

  /** Shows it again. */
  release() {
    this.#isHeld = false;
    this.#plan();
  }

  /** Ends it. */
  stop() {
    this.#stop.abort();
  }
}
