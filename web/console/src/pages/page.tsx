// What every page has.

import type { Api } from "../api.js";
import { say } from "../words.js";

export interface PageProps {
  watch: { api: Api; denied: () => void };
}

/** Says that the server does not answer. */
export function Lost({ lost }: { lost: boolean }) {
  return (
    <p role="alert" class="lost" hidden={!lost}>
      {lost && say("lost")}
    </p>
  );
}
