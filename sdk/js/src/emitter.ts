type Listener<T> = (value: T) => void;

/** Calls listeners for the events that `Events` lists. */
export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Registers a listener. Returns a function that removes it. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all);
    all.add(listener as Listener<never>);
    return () => void all.delete(listener as Listener<never>);
  }

  protected emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      (listener as Listener<Events[Name]>)(value);
    }
  }
}
