// How the page names itself when it joins, for the operator's statistics.

type Navigation = Pick<PerformanceNavigationTiming, "domInteractive"> & { activationStart?: number };

/** Returns the name, with the milliseconds until the page could be used if the browser measured them (Navigation Timing). */
export function clientName(navigation: Navigation | undefined): string {
  // The script of the page runs when the document is interactive. A page that was prerendered began when it was activated.
  const millis = Math.round((navigation?.domInteractive ?? 0) - (navigation?.activationStart ?? 0));
  return millis > 0 ? `page;load=${millis}` : "page";
}
