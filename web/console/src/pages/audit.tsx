import type { Change } from "../api.js";
import { Changes } from "../components/changes.js";
import { usePoll } from "../poll.js";
import { t } from "../i18n.js";
import { ConnectionLost, type PageProps } from "./page.js";

export function Audit({ watch }: PageProps) {
  const { data, lost } = usePoll<{ entries: Change[] }>(watch, "/audit?limit=500", 3000);
  return (
    <main>
      <ConnectionLost lost={lost} />
      <section class="card">
        <h1>{t("audit")}</h1>
        {data && <Changes changes={data.entries} />}
      </section>
    </main>
  );
}
