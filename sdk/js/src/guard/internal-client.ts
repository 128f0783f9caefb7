/** Client of daegi's internal listener, which knows whether an entry has ended. */
export class InternalClient {
  readonly #url: string;
  readonly #timeoutMs: number;

  constructor(url: string, timeoutMs: number) {
    this.#url = url;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns whether the entry of this pass is still live. */
  async hasEntry(item: string, pass: string): Promise<boolean> {
    return (await this.#call(item, "verify", { pass }))["valid"] === true;
  }

  /** Ends an entry. Returns false if it had already ended. */
  async complete(item: string, token: string): Promise<boolean> {
    return (await this.#call(item, "complete", { token }))["released"] === true;
  }

  async #call(item: string, operation: string, body: object): Promise<Record<string, unknown>> {
    const url = `${this.#url}/internal/v1/item/${item}/entry/${operation}`;
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    if (!response.ok) throw new Error(`${url} responded with ${response.status}`);
    return (await response.json()) as Record<string, unknown>;
  }
}
