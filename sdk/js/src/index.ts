// Client of a daegi waiting room. No dependencies.
//
//   const room = new WaitingRoom({ itemId: "concert" });
//   const ticket = await room.join("kim");
//   room.follow(ticket).on("enterable", (mine) => location.assign(mine.entryUrl ?? "/"));

export { WaitingRoom, type JoinOptions, type RequestOptions, type RoomOptions } from "./room.js";
export { TicketSubscription, type Connection, type SubscriptionEvents, type SubscriptionOptions } from "./subscription.js";
export { type BlockedNotice, ProblemError, type OpeningTimes, type ProblemCode } from "./problem.js";
export { type Challenge, type OnChallenge, type SolveChallenge, type Widget, solveChallenge } from "./challenge.js";
export { type Handover, isHandoverUsed, issueHandover, takeOver } from "./handover.js";
export { checkDraw, type DrawCheck, type DrawCheckName, type DrawRecord, type DrawTicket } from "./draw.js";
export type { Eta, LaneView, Line, LineState, LocalTexts, OpeningOrder, PageLink, PageLinks, PageTexts, Status, Ticket } from "./wire.js";
export { isFinal } from "./wire.js";
