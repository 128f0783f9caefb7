// Server-sent events from the body of a fetch. EventSource can neither send a token in a header
// nor tell a 410 from a 503, and both matter here.

export interface ServerEvent {
  /** `message` where the server named none. */
  name: string;
  data: string;
}

/** What a stream has said so far beside its events. Outlives one connection, for resuming. */
export interface StreamMemory {
  lastEventId: string;
  /** How long to wait before connecting again, as the server last said. */
  retryMs: number | null;
}

/** Reads text in any pieces and gives out whole events. */
export class EventParser {
  #rest = "";
  #name = "";
  #data: string[] = [];

  constructor(readonly memory: StreamMemory) {}

  push(text: string): ServerEvent[] {
    // A CR at the very end may be half of a CRLF: it waits for what follows.
    const all = this.#rest + text;
    const whole = all.endsWith("\r") ? all.length - 1 : all.length;
    const lines = all.slice(0, whole).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + all.slice(whole);
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): ServerEvent[] {
    if (line === "") {
      return this.#dispatch();
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
    else if (field === "id") this.memory.lastEventId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.memory.retryMs = Number(value);
    return [];
  }

  #dispatch(): ServerEvent[] {
    const event = { name: this.#name || "message", data: this.#data.join("\n") };
    const isEvent = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    return isEvent ? [event] : [];
  }
}
