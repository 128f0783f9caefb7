/** daegi's internal listener, which knows more than a pass can say. */
export class Internal {
  readonly #address: string;
  readonly #timeoutMs: number;

  constructor(address: string, timeoutMs: number) {
    this.#address = address;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether the holder of this pass may be inside now. */
  async isInside(item: string, pass: string): Promise<boolean> {
    return (await this.#call(item, "verify", { pass }))["valid"] === true;
  }

  /** Ends an entry, and answers whether it had not ended yet. */
  async complete(item: string, token: string): Promise<boolean> {
    return (await this.#call(item, "complete", { token }))["released"] === true;
  }

  async #call(item: string, what: string, body: object): Promise<Record<string, unknown>> {
    const url = `${this.#address}/internal/v1/item/${item}/entry/${what}`;
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
    return (await answer.json()) as Record<string, unknown>;
  }
}
