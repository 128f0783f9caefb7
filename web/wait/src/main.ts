// Composition of the waiting page.

import { type LocalTexts, WaitingRoom } from "../../../sdk/js/src/index.js";
import { Alerts } from "./alerts.js";
import { solveInWorker } from "./challenge-worker.js";
import type { ShowWidget } from "./widget.js";
import { Chime } from "./chime.js";
import { browserSession, browserStorage, newUserId, TicketStorage } from "./ticket-storage.js";
import type { Screen } from "./screen.js";
import { Announcer } from "./announcer.js";
import { Countdown } from "./countdown.js";
import { etaText } from "./eta.js";
import { Invitation } from "./invitation.js";
import { takeCode } from "./address.js";
import { clientName } from "./client-name.js";
import { Tabs } from "./tabs.js";
import { DrawPanel } from "./draw-panel.js";
import { EntryFlow } from "./entry.js";
import { identified, keptIdentity, takeIdentity } from "./identity.js";
import { continueAt } from "./return-address.js";
import { View } from "./view.js";
import { VisitController } from "./visit.js";
import { format, localeOf, localTexts, type Messages } from "./i18n.js";

const { lang, dataset } = document.documentElement;
const { item = "", name = "", revision = "", line = "", lanes = "", identity = "", links, version = "", away = "" } = dataset;
let texts: LocalTexts = { name, message: null, ...(links && { links: JSON.parse(links) }) };
const messages = JSON.parse(document.getElementById("words")?.textContent ?? "{}") as Messages;
// What happens to a user who closes the page is a rule of the line.
// Chinese and Japanese have no space between sentences.
messages.waitingText += (messages.waitingText.endsWith("。") ? "" : " ") + (away === "true" ? messages.away : messages.awayKept);
const locale = localeOf(lang, navigator.languages);
const room = new WaitingRoom({
  itemId: item,
  page: revision,
  client: clientName(performance.getEntriesByType("navigation")[0] as PerformanceNavigationTiming | undefined),
  solve(challenge, signal) {
    showChecking(messages.checkingHead, messages.checkingText);
    return solveInWorker(challenge, signal);
  },
  onChallenge: (challenge, signal) => ((globalThis as { showWidget?: ShowWidget }).showWidget ?? reload)(challenge, showChecking, signal),
});
const storage = new TicketStorage(item, browserStorage(), newUserId);
const [view, chime] = [new View(), new Chime()];
const announcer = new Announcer((text) => view.announce(text), messages, view.number);
const countdown = new Countdown(view, announcer, messages, locale);
const draw = new DrawPanel(room, storage, view, messages, async (token, expected) => {
  const { more, words } = await loadMore();
  return more.checkedDraw(room, token, expected, words);
});
const invitation = new Invitation(async () => {
  const { more, words } = await loadMore();
  return more.createInvitation(room, view, words, redeem);
}, lanes === "true");
const options = { sound: view.option("sound"), notify: view.option("notify"), awake: view.option("awake") };
const alerts = new Alerts(browserStorage(), chime, options, () => view.notice(messages.notifyBlocked));
const entry = new EntryFlow(room, view, () => alerts.turn(messages.turnHead, texts.name), messages);
let shown: Screen | null = null;
/** Screens of a ticket that waits. */
const HELD: ReadonlySet<Screen["kind"]> = new Set(["lobby", "waiting", "still"]);

/** Rooms with signed identities know the user from the identity; elsewhere this page makes up a user id. */
const joining = identity === "true" ? identified(room, () => keptIdentity(null, browserSession())) : room;

const visit = new VisitController(joining, storage, new Tabs(room, revision), messages, {
  screen(screen, ticket, done) {
    shown = screen;
    view.show(screen, done);
    showWay();
    const drawn = draw.show(ticket);
    announcer.show(screen, screen.next ? countdown.label(screen.next) : drawn);
    invitation.show(screen.kind, ticket, storage.current.code !== undefined);
    countdown.show(screen.next);
    document.title = titleOf(screen);
    alerts.waits(HELD.has(screen.kind));
    if (screen.kind === "turn" && ticket) entry.begin({ ...ticket, entryUrl: continueAt(ticket.entryUrl, ticket.pass, location) });
    else entry.end();
    if (!HELD.has(screen.kind)) view.notice("");
  },
  lost(isLost) {
    const text = view.lost(isLost);
    if (isLost) view.announce(text);
  },
  notice: (text) => view.notice(text),
  grew(from, to) {
    const text = from === null ? "" : format(messages.grew, { n: view.number(to), before: view.number(from) });
    view.notice(text);
    if (text) view.announce(text);
  },
  line: (line) => invitation.update(line),
  codeRefused: (code, isJoined) => void invitation.refused(code, isJoined),
  codeOffered: (code) => void invitation.offer(code, redeem),
  page(page) {
    texts = localTexts(page, lang);
    if (view.page(texts) && texts.message) view.announce(texts.message);
    showWay();
    if (shown) document.title = titleOf(shown);
  },
}, (eta) => etaText(messages, eta, room.now(), locale), line);

function redeem(code: string) {
  return visit.redeem(code);
}

let loading: Promise<{ more: typeof import("./more.js"); words: Messages }> | null = null;

/** Loads the script that few users need, with its texts and its style. */
function loadMore() {
  const address = `/wait-more.js?v=${version}`;
  const fetched = async () => {
    const style = document.createElement("link");
    [style.rel, style.href] = ["stylesheet", `/wait-more.css?v=${version}`];
    document.head.append(style);
    const [more, words] = await Promise.all([
      import(address) as Promise<typeof import("./more.js")>,
      fetch(`/wait-texts/${lang}?v=${version}`).then((response) => response.json() as Promise<Messages>),
    ]);
    view.renderVerdict = (verdict) => more.renderVerdict(verdict, words);
    return { more, words };
  };
  loading ??= fetched().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

/** Takes the code of an invitation link, at the start or when the user opens one in this tab. */
function takeInvitation(): void {
  const code = takeCode(location, history);
  if (code === null) return;
  visit.invite(code);
  if (shown) invitation.show(shown.kind, visit.ticket, storage.current.code !== undefined);
}

/** Shows that a challenge is being solved, unless the user has a place already. */
function showChecking(headline: string, text: string): void {
  if (shown && HELD.has(shown.kind)) return;
  const screen: Screen = { kind: "joining", headline, text };
  view.show(screen, 0);
  announcer.show(screen);
}

/** Loads the page again: the line got a widget after the page was loaded. Pods that disagree must not repeat this without a pause. */
function reload(): Promise<never> {
  return new Promise(() => setTimeout(() => location.reload(), 3_000));
}

/** Shows the operator's link for the state, if there is one. */
function showWay(): void {
  view.way(shown?.link && texts.links?.[shown.link], messages.goOn);
}

function titleOf({ kind, headline, place }: Screen): string {
  const { name } = texts;
  if (kind === "turn") return format(messages.titleTurn, { name });
  if (kind === "waiting" && place) return format(messages.titlePlace, { n: view.number(place.position), name });
  return `${headline} · ${name}`;
}

view.again.addEventListener("click", () => {
  if (shown?.kind === "missing") location.reload();
  else void visit.join();
});
// The check computes hashes, which browsers allow on secure pages only.
view.check.hidden = !isSecureContext;
view.check.addEventListener("click", () => void draw.check());
view.move.addEventListener("click", async () => {
  const { token } = storage.current;
  const loaded = await loadMore().catch(() => null);
  if (loaded && token) await loaded.more.showHandover(room, token, view, loaded.words);
});
view.leave.addEventListener("click", async () => {
  const asked = await loadMore().then(({ more, words }) => more.askLeave(words), () => false);
  if (asked) await visit.leave();
});
window.addEventListener("hashchange", takeInvitation);
for (const gesture of ["pointerdown", "keydown"]) {
  window.addEventListener(gesture, () => chime.allow(), { once: true });
}
window.addEventListener("storage", ({ key }) => {
  if (key === storage.key) visit.adopt();
});

/** Continues with the ticket of another device, if the address has its code. */
async function begin(): Promise<void> {
  keptIdentity(takeIdentity(location, history), browserSession());
  const code = takeCode(location, history, "from");
  const loaded = code !== null && (await loadMore().catch(() => null));
  if (loaded) await loaded.more.takeHandover(room, code as string, storage, view, loaded.words);
  takeInvitation();
  await visit.begin();
}

void begin();
