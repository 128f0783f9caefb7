// How a user who looks elsewhere notices the admission: sound, vibration, notification, and a screen that stays on.

import type { Chime } from "./chime.js";
import type { KeyValueStore } from "./ticket-storage.js";

const KEY = "daegi:alerts";
const PATTERN = [200, 120, 200, 120, 400];

/** What the user chose. */
interface Choices {
  sound: boolean;
  notify: boolean;
  awake: boolean;
}

/** A check box with its label. */
interface Option {
  label: HTMLElement;
  box: HTMLInputElement;
}

export class Alerts {
  #choices: Choices = { sound: true, notify: false, awake: false };
  #lock: WakeLockSentinel | null = null;
  #waits = false;

  constructor(
    readonly store: KeyValueStore | null,
    readonly chime: Chime,
    readonly options: Record<keyof Choices, Option>,
    /** Says that the browser blocks notifications. */
    readonly blocked: () => void,
  ) {
    this.#load();
    const { sound, notify, awake } = options;
    // On Android, pages show notifications with a service worker only.
    notify.label.hidden = !("Notification" in window) || !isSecureContext || /Android/.test(navigator.userAgent);
    awake.label.hidden = !("wakeLock" in navigator);
    sound.box.checked = this.#choices.sound;
    notify.box.checked = this.#choices.notify && !notify.label.hidden && Notification.permission === "granted";
    awake.box.checked = this.#choices.awake;
    for (const [name, { box }] of Object.entries(options)) {
      box.addEventListener("change", () => void this.#choose(name as keyof Choices, box));
    }
    // The browser releases the lock when the page is hidden.
    document.addEventListener("visibilitychange", () => void this.#keepAwake());
  }

  /** Keeps the screen on while the user waits, if the user chose so. */
  waits(waits: boolean): void {
    if (this.#waits === waits) return;
    this.#waits = waits;
    void this.#keepAwake();
  }

  /** Alerts to the admission, as the user chose. */
  turn(title: string, body: string): void {
    const { sound, notify } = this.options;
    if (sound.box.checked) {
      this.chime.ring();
      // Browsers without it, and before the first touch, ignore this.
      navigator.vibrate?.(PATTERN);
    }
    if (!notify.box.checked || document.visibilityState !== "hidden") return;
    try {
      const notification = new Notification(title, { body, tag: "daegi" });
      notification.onclick = () => {
        window.focus();
        notification.close();
      };
    } catch {
      // Blocked by the system: the title and the sound remain.
    }
  }

  /** Asks for permission on the click only. */
  async #choose(name: keyof Choices, box: HTMLInputElement): Promise<void> {
    if (name === "notify" && box.checked && (await Notification.requestPermission()) !== "granted") {
      box.checked = false;
      this.blocked();
    }
    this.#choices[name] = box.checked;
    if (name === "awake") void this.#keepAwake();
    try {
      this.store?.setItem(KEY, JSON.stringify(this.#choices));
    } catch {
      // The choice lives as long as this page.
    }
  }

  async #keepAwake(): Promise<void> {
    const wanted = this.#waits && this.options.awake.box.checked && document.visibilityState === "visible";
    if (wanted && (!this.#lock || this.#lock.released)) {
      // Refused with a low battery.
      this.#lock = await navigator.wakeLock?.request("screen").catch(() => null) ?? null;
    } else if (!wanted && this.#lock) {
      void this.#lock.release().catch(() => {});
      this.#lock = null;
    }
  }

  #load(): void {
    try {
      Object.assign(this.#choices, JSON.parse(this.store?.getItem(KEY) ?? "{}"));
    } catch {
      // Storage is forbidden, or has another content.
    }
  }
}
