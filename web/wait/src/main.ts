// Composition of the waiting page.

import { WaitingRoom } from "../../../sdk/js/src/index.js";
import { solveInWorker } from "./challenge-worker.js";
import { Chime } from "./chime.js";
import { browserSession, browserStorage, newUserId, TicketStorage } from "./ticket-storage.js";
import type { Screen } from "./screen.js";
import { Announcer } from "./announcer.js";
import { Countdown } from "./countdown.js";
import { InvitationPanel } from "./invitation-panel.js";
import { takeCode } from "./address.js";
import { Tabs } from "./tabs.js";
import { DrawPanel } from "./draw-panel.js";
import { EntryFlow } from "./entry.js";
import { identified, keptIdentity, takeIdentity } from "./identity.js";
import { continueAt } from "./return-address.js";
import { View } from "./view.js";
import { VisitController } from "./visit.js";
import { format, localeOf, type Messages } from "./i18n.js";

const { item = "", revision = "", line = "", lanes = "", identity = "" } = document.documentElement.dataset;
let { name = "" } = document.documentElement.dataset;
const messages = JSON.parse(document.getElementById("words")?.textContent ?? "{}") as Messages;
const room = new WaitingRoom({
  itemId: item,
  solve(challenge, signal) {
    showChecking();
    return solveInWorker(challenge, signal);
  },
});
const storage = new TicketStorage(item, browserStorage(), newUserId);
const [view, chime] = [new View(), new Chime()];
const announcer = new Announcer((text) => view.announce(text), messages, view.number);
const countdown = new Countdown(view, announcer, messages, localeOf(document.documentElement.lang, navigator.languages));
const draw = new DrawPanel(room, storage, view, messages);
const invitation = new InvitationPanel(room, view, messages, lanes === "true");
const entry = new EntryFlow(room, view, chime, messages);
let shown: Screen | null = null;
/** Screens of a ticket that waits. */
const HELD: ReadonlySet<Screen["kind"]> = new Set(["lobby", "waiting", "still"]);

/** Rooms with signed identities know the user from the identity; elsewhere this page makes up a user id. */
const joining = identity === "true" ? identified(room, () => keptIdentity(null, browserSession())) : room;

const visit = new VisitController(joining, storage, new Tabs(room, revision), messages, {
  screen(screen, ticket, done) {
    shown = screen;
    view.show(screen, done);
    const drawn = draw.show(ticket);
    announcer.show(screen, screen.next ? countdown.label(screen.next) : drawn);
    invitation.show(screen.kind, ticket, storage.current.code !== undefined);
    countdown.show(screen.next);
    document.title = titleOf(screen);
    if (screen.kind === "turn" && ticket) entry.begin({ ...ticket, entryUrl: continueAt(ticket.entryUrl, ticket.pass, location) });
    else entry.end();
    if (!HELD.has(screen.kind)) view.notice("");
  },
  lost(isLost) {
    view.lost(isLost);
    if (isLost) view.announce(messages.lost);
  },
  notice: (text) => view.notice(text),
  line: (line) => invitation.update(line),
  codeRefused: (code, isJoined) => invitation.refused(code, isJoined),
  codeOffered: (code) => void invitation.offer(code, redeem),
  page(page) {
    name = page.name;
    if (view.page(page) && page.message) view.announce(page.message);
    if (shown) document.title = titleOf(shown);
  },
}, line);

function redeem(code: string) {
  return visit.redeem(code);
}

/** Takes the code of an invitation link, at the start or when the user opens one in this tab. */
function takeInvitation(): void {
  const code = takeCode(location, history);
  if (code === null) return;
  visit.invite(code);
  if (shown) invitation.show(shown.kind, visit.ticket, storage.current.code !== undefined);
}

/** Shows that a challenge is being solved, unless the user has a place already. */
function showChecking(): void {
  if (shown && HELD.has(shown.kind)) return;
  const screen: Screen = { kind: "joining", headline: messages.checkingHead, text: messages.checkingText };
  view.show(screen, 0);
  announcer.show(screen);
}

function titleOf({ kind, headline, place }: Screen): string {
  if (kind === "turn") return format(messages.titleTurn, { name });
  if (kind === "waiting" && place) return format(messages.titlePlace, { n: view.number(place.position), name });
  return `${headline} · ${name}`;
}

view.again.addEventListener("click", () => void visit.join());
// The check computes hashes, which browsers allow on secure pages only.
view.check.hidden = !isSecureContext;
view.check.addEventListener("click", () => void draw.check());
view.leave.addEventListener("click", async () => {
  if (await view.confirmLeave()) await visit.leave();
});
view.codeForm.addEventListener("submit", (event) => {
  event.preventDefault();
  void invitation.submit(view.code.value, redeem);
});
window.addEventListener("hashchange", takeInvitation);
for (const gesture of ["pointerdown", "keydown"]) {
  window.addEventListener(gesture, () => chime.allow(), { once: true });
}
window.addEventListener("storage", ({ key }) => {
  if (key === storage.key) visit.adopt();
});

keptIdentity(takeIdentity(location, history), browserSession());
takeInvitation();
void visit.begin();
