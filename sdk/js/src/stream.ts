import { problemFromEvent } from "./problem.js";
import { EventParser, type StreamState } from "./sse.js";
import type { PageTexts, Ticket } from "./wire.js";

/** Above the server's keep-alive interval (15 s). */
const IDLE_TIMEOUT_MS = 40_000;
/** The server sends the first bytes immediately. Without them, a proxy buffers the stream. */
const FIRST_BYTE_TIMEOUT_MS = 8_000;

/** Streams do not work on this connection. */
export class StreamUnsupportedError extends Error {
  constructor(readonly isPermanent: boolean) {
    super("streams are not supported on this connection");
  }
}

/** Receives the events of a stream. */
export interface StreamListener {
  ticket(ticket: Ticket): void;
  page(page: PageTexts): void;
}

/** Dispatches events until the stream ends, is idle for too long or is stopped. Throws the problem that a stream ends with. */
export async function readStream(
  response: Response,
  state: StreamState,
  listener: StreamListener,
  signal: AbortSignal,
): Promise<void> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (!isStream || !response.body) throw new StreamUnsupportedError(true);
  const parser = new EventParser(state);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  state.retryMs = null;
  try {
    for (let first = true; !signal.aborted; first = false) {
      const chunk = await withIdleTimeout(reader.read(), first ? FIRST_BYTE_TIMEOUT_MS : IDLE_TIMEOUT_MS);
      if (chunk === "idle" && first) throw new StreamUnsupportedError(true);
      if (chunk === "idle" || chunk.done) return;
      for (const event of parser.push(chunk.value)) {
        if (event.name === "ticket") listener.ticket(JSON.parse(event.data) as Ticket);
        else if (event.name === "page") listener.page(JSON.parse(event.data) as PageTexts);
        else if (event.name === "problem") throw problemFromEvent(event.data);
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

async function withIdleTimeout<T>(next: Promise<T>, ms: number): Promise<T | "idle"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const idle = new Promise<"idle">((resolve) => (timer = setTimeout(resolve, ms, "idle")));
  try {
    return await Promise.race([next, idle]);
  } finally {
    clearTimeout(timer);
  }
}
