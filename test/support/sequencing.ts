/**
 * A sequencer in a plain loop: live batches, answers and time in, what it wants done out, each action as
 * a short text: `3` (emitted), `gap 2`, `restart`, `ask 1`, `drop`; with a `!` where it clears.
 */
import type { EngineMessage } from '../../src/listener/frames.ts';
import { Sequencer, type SequencerOptions } from '../../src/listener/sequencer.ts';
import type { SequencerAction } from '../../src/listener/sequencer-action.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';

type Sequence = number | bigint;
type Content = string | Uint8Array;

export class Sequencing {
  readonly metrics: RelayMetrics = new RelayMetrics();
  readonly sequencer: Sequencer;
  nowMs = 0;
  /** Of the ask put last. */
  askId = 0;

  constructor(options: Partial<SequencerOptions> = {}) {
    const bounds = { holdBatches: 100, holdBytes: 1000, idleMs: 1000, cooldownMs: 30_000 };
    const policies = { canAsk: true, clearsOnGap: false, clearsOnRestart: true };
    this.sequencer = new Sequencer({ ...bounds, ...policies, ...options }, this.metrics);
  }

  /** As it is in the middle of a stream: linked, the first replay over, 0 to `last` emitted. */
  static flowing(last: number, options: Partial<SequencerOptions> = {}): Sequencing {
    const sequencing = new Sequencing(options);
    if (options.canAsk !== false) {
      sequencing.link();
      sequencing.end();
    }
    for (let sequence = 0; sequence <= last; sequence++) sequencing.live(sequence);
    sequencing.nowMs += 1000;
    return sequencing;
  }

  live(sequence: Sequence, content: Content = `of ${sequence}`): string[] {
    const message = this.#message(sequence, content);
    return this.#acted((out) => {
      if (this.sequencer.takeLive(message, out)) out.push({ kind: 'emit', message });
    });
  }

  replayed(
    sequence: Sequence,
    content: Content = `of ${sequence}`,
    id: number = this.askId,
  ): string[] {
    const message = this.#message(sequence, content);
    return this.#acted((out) => this.sequencer.takeReplayed(id, message, out));
  }

  end(id: number = this.askId): string[] {
    return this.#acted((out) => this.sequencer.takeReplayEnd(id, this.nowMs, out));
  }

  fail(id: number = this.askId): string[] {
    return this.#acted((out) => this.sequencer.takeReplayFailure(id, this.nowMs, out));
  }

  link(): string[] {
    return this.#acted((out) => this.sequencer.takeLink(true, this.nowMs, out));
  }

  unlink(): string[] {
    return this.#acted((out) => this.sequencer.takeLink(false, this.nowMs, out));
  }

  relink(): string[] {
    return [...this.unlink(), ...this.link()];
  }

  /** Lets time pass, with a tick at each deadline on the way. */
  pass(ms: number): string[] {
    const endMs = this.nowMs + ms;
    const done: string[] = [];
    for (let ticks = 0; this.sequencer.deadlineMs <= endMs; ticks++) {
      if (ticks > 1000) throw new Error('a deadline that does not move');
      this.nowMs = Math.max(this.nowMs, this.sequencer.deadlineMs);
      done.push(...this.#acted((out) => this.sequencer.tick(this.nowMs, out)));
    }
    this.nowMs = endMs;
    return done;
  }

  finish(): string[] {
    return this.#acted((out) => this.sequencer.finish(out));
  }

  get lost(): number {
    return this.metrics.lostBatches;
  }

  #message(sequence: Sequence, content: Content): EngineMessage {
    const payload = typeof content === 'string' ? Buffer.from(content) : content;
    return { sequence: BigInt(sequence), payload, arrivedAtMs: this.nowMs };
  }

  #acted(act: (out: SequencerAction[]) => void): string[] {
    const out: SequencerAction[] = [];
    act(out);
    for (const action of out) if (action.kind === 'ask') this.askId = action.id;
    return out.map(shown);
  }
}

function shown(action: SequencerAction): string {
  switch (action.kind) {
    case 'emit':
      return String(action.message.sequence);
    case 'ask':
      return `ask ${action.start}`;
    case 'gap':
      return `gap ${action.lostBatches}${action.clears ? '!' : ''}`;
    case 'restart':
      return `restart${action.clears ? '!' : ''}`;
    case 'drop':
      return action.kind;
  }
}
