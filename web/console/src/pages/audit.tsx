import type { Change } from "../api.js";
import { Changes } from "../parts/changes.js";
import { usePoll } from "../poll.js";
import { say } from "../words.js";
import { Lost, type PageProps } from "./page.js";

export function Audit({ watch }: PageProps) {
  const { data, lost } = usePoll<{ entries: Change[] }>(watch, "/audit?limit=500", 3000);
  return (
    <main>
      <Lost lost={lost} />
      <section class="card">
        <h1>{say("audit")}</h1>
        {data && <Changes changes={data.entries} />}
      </section>
    </main>
  );
}
