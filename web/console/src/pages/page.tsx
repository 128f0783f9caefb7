// What every page has.

import type { Api } from "../api.js";
import { t } from "../i18n.js";

export interface PageProps {
  watch: { api: Api; denied: () => void };
}

/** Shows that the server is unreachable. */
export function ConnectionLost({ lost }: { lost: boolean }) {
  return (
    <p role="alert" class="lost" hidden={!lost}>
      {lost && t("lost")}
    </p>
  );
}
