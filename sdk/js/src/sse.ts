// Parses server-sent events from the body of a fetch. EventSource can neither send a token in a header
// nor distinguish a 410 from a 503.

export interface ServerEvent {
  /** `message` if the server sent no name. */
  name: string;
  data: string;
}

/** State of a stream beside its events. Kept across connections, for resuming. */
export interface StreamState {
  lastEventId: string;
  /** Delay before reconnecting, as last sent by the server. */
  retryMs: number | null;
}

/** Parses text in chunks of any size into events. */
export class EventParser {
  #rest = "";
  #name = "";
  #data: string[] = [];

  constructor(readonly state: StreamState) {}

  push(text: string): ServerEvent[] {
    // A CR at the end may be half of a CRLF: keep it for the next chunk.
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
    else if (field === "id") this.state.lastEventId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.state.retryMs = Number(value);
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
