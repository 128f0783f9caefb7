// Puts the page together.

import { WaitingRoom } from "../../../sdk/js/src/index.js";
import { Chime } from "./chime.js";
import { browserShelf, newUserId, Places } from "./place.js";
import type { Scene } from "./scene.js";
import { Speaker } from "./speaker.js";
import { Tabs } from "./tabs.js";
import { Turn } from "./turn.js";
import { View } from "./view.js";
import { Visit } from "./visit.js";
import { fill, type Words } from "./words.js";

const { item = "", revision = "" } = document.documentElement.dataset;
let { name = "" } = document.documentElement.dataset;
const words = JSON.parse(document.getElementById("words")?.textContent ?? "{}") as Words;
const room = new WaitingRoom({ itemId: item });
const places = new Places(item, browserShelf(), newUserId);
const [view, chime] = [new View(), new Chime()];
const speaker = new Speaker((text) => view.say(text), words.place);
const turn = new Turn(room, view, chime, words);
let shown: Scene | null = null;

const visit = new Visit(room, places, new Tabs(room, revision), words, {
  scene(scene, ticket, done) {
    shown = scene;
    view.show(scene, done);
    speaker.show(scene);
    document.title = titleOf(scene);
    if (scene.kind === "turn" && ticket) turn.begin(ticket);
    else turn.end();
    if (scene.kind !== "waiting" && scene.kind !== "still") view.notice("");
  },
  lost(isLost) {
    view.lost(isLost);
    if (isLost) view.say(words.lost);
  },
  notice: (text) => view.notice(text),
  page(page) {
    name = page.name;
    if (view.page(page) && page.message) view.say(page.message);
    if (shown) document.title = titleOf(shown);
  },
});

function titleOf({ kind, headline, place }: Scene): string {
  if (kind === "turn") return fill(words.titleTurn, { name });
  if (kind === "waiting" && place) return fill(words.titlePlace, { n: place.position, name });
  return `${headline} · ${name}`;
}

view.again.addEventListener("click", () => void visit.join());
view.leave.addEventListener("click", async () => {
  if (await view.reallyLeaves()) await visit.leave();
});
for (const gesture of ["pointerdown", "keydown"]) {
  window.addEventListener(gesture, () => chime.allow(), { once: true });
}
window.addEventListener("storage", ({ key }) => {
  if (key === places.key) visit.adopt();
});

void visit.begin();
