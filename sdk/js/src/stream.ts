import { problemIn } from "./problem.js";
import { EventParser, type StreamMemory } from "./sse.js";
import type { PageTexts, Ticket } from "./wire.js";

/** Beyond the server's heartbeats, which come every 15 s. */
const SILENCE_MS = 40_000;
/** A stream begins with a word at once. One that does not is held back by something in between. */
const FIRST_WORD_MS = 8_000;

/** Streams do not work here. */
export class StreamUnusable extends Error {
  constructor(readonly forGood: boolean) {
    super("no stream to be had here");
  }
}

/** What a stream carries. */
export interface StreamListener {
  ticket(ticket: Ticket): void;
  page(page: PageTexts): void;
}

/** Hands on events until the stream ends, falls silent or is stopped. Throws the problem that a stream ends with. */
export async function readStream(
  answer: Response,
  memory: StreamMemory,
  listener: StreamListener,
  signal: AbortSignal,
): Promise<void> {
  const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream");
  if (!isStream || !answer.body) throw new StreamUnusable(true);
  const parser = new EventParser(memory);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  memory.retryMs = null;
  try {
    for (let first = true; !signal.aborted; first = false) {
      const piece = await unlessSilent(reader.read(), first ? FIRST_WORD_MS : SILENCE_MS);
      if (piece === "silent" && first) throw new StreamUnusable(true);
      if (piece === "silent" || piece.done) return;
      for (const event of parser.push(piece.value)) {
        if (event.name === "ticket") listener.ticket(JSON.parse(event.data) as Ticket);
        else if (event.name === "page") listener.page(JSON.parse(event.data) as PageTexts);
        else if (event.name === "problem") throw problemIn(event.data);
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

async function unlessSilent<T>(next: Promise<T>, ms: number): Promise<T | "silent"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<"silent">((resolve) => (timer = setTimeout(resolve, ms, "silent")));
  try {
    return await Promise.race([next, silence]);
  } finally {
    clearTimeout(timer);
  }
}
