// Plays two notes when the user is admitted. Synthesized, so that no file has to be loaded.

const NOTES = [
  { hertz: 659.25, after: 0 },
  { hertz: 987.77, after: 0.18 },
];

export class Chime {
  #context: AudioContext | null = null;

  /** Enables sound. Browsers allow it only after a user gesture: call this from one. */
  allow(): void {
    if (!("AudioContext" in window)) return;
    this.#context ??= new AudioContext();
    void this.#context.resume().catch(() => {});
  }

  ring(): void {
    this.allow();
    const context = this.#context;
    if (!context) return;
    for (const { hertz, after } of NOTES) {
      const [tone, volume] = [context.createOscillator(), context.createGain()];
      const begin = context.currentTime + after;
      tone.frequency.value = hertz;
      volume.gain.setValueAtTime(0, begin);
      volume.gain.linearRampToValueAtTime(0.2, begin + 0.02);
      volume.gain.exponentialRampToValueAtTime(0.001, begin + 1.2);
      tone.connect(volume).connect(context.destination);
      tone.start(begin);
      tone.stop(begin + 1.3);
    }
  }
}
