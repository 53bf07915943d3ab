/**
 * EngineSource: one engine socket, its dialect, and the relays of the ranks it carries.
 *
 * Restart  and gap: where they clear, every rank of the socket is cleared, behind what came before.
 * strict   one socket is one relay; events of any rank pass under its ids.
 * safe     a batch goes to the relay of its rank; a rank that is not among them is counted and dropped;
 *          a batch without a rank belongs to the first one.
 * Owns     the listener and the batch reader. The kernel's arena is given up before each message.
 */
import { rankEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import { BatchReader } from './engines/batch-reader.ts';
import { assertInvariant } from './errors.ts';
import { arena } from './kernel/arena.ts';
import {
  EngineListener,
  type EngineListenerOptions,
  type ListenerEvent,
} from './listener/engine-listener.ts';
import type { EngineMessage } from './listener/frames.ts';
import type { Logger, Warner } from './log.ts';
import { diverges } from './protocol/compat.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import type { OwnClearCause } from './protocol/rank-cleared.ts';
import type { Relay } from './relay.ts';

export interface EngineSourceDeps {
  readonly config: WorkerConfig;
  /** Of the ranks on this socket, first rank first; one at least. */
  readonly relays: readonly Relay[];
  readonly logger: Logger;
  readonly warner: Pick<Warner, 'warn'>;
}

export class EngineSource {
  readonly listener: EngineListener;
  readonly relays: readonly Relay[];
  readonly #first: Relay;
  readonly #config: WorkerConfig;
  readonly #logger: Logger;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #reader: BatchReader;

  constructor({ config, relays, logger, warner }: EngineSourceDeps) {
    const [first] = relays;
    assertInvariant(first !== undefined, 'an engine socket without a rank');
    this.relays = relays;
    this.#first = first;
    this.#config = config;
    this.#logger = logger;
    this.#warner = warner;
    this.#reader = new BatchReader(config);
    this.listener = new EngineListener(
      {
        endpoint: rankEndpoint(config.engineEndpoint, first.dpRank - config.dpRank),
        bind: config.engineBind,
        topic: config.engineTopic,
        receiveHwm: config.engineReceiveHwm,
        maxMessageBytes: config.engineMaxMessageBytes,
        compat: config.compat,
        sequencing: sequencingOf(config),
        replayEndpoint: this.#replayEndpoint(),
        onEvent: (event) => this.#takeListenerEvent(event),
      },
      first.metrics,
    );
    this.listener.messages$.subscribe({
      next: (message) => this.#relayMessage(message),
      complete: () => this.#reader.free(),
    });
  }

  #relayMessage({ payload, arrivedAtMs }: EngineMessage): void {
    arena.reset();
    const batch = this.#reader.read(payload, arrivedAtMs);
    if (typeof batch === 'string') {
      this.#noteUnreadable();
      this.#first.metrics.malformed[batch]++;
      this.#warnMalformed(batch, payload.length);
      return;
    }
    this.#route(batch);
  }

  #route(batch: NativeBatch): void {
    if (!diverges(this.#config.compat, 'rank-routing')) {
      this.#first.push(batch);
      return;
    }
    const { dpRank } = batch;
    if (dpRank === null) {
      this.#first.push({ ...batch, dpRank: this.#first.dpRank });
      return;
    }
    const relay = this.relays[dpRank - this.#first.dpRank];
    if (relay !== undefined) {
      relay.push(batch);
      return;
    }
    this.#first.metrics.foreignRankBatches++;
    const fields = { endpoint: this.listener.endpoint, dpRank };
    this.#warner.warn('foreign_rank', fields, 'a batch of a rank that is not ours was dropped');
  }

  #takeListenerEvent(event: ListenerEvent): void {
    const { endpoint } = this.listener;
    if (event.kind === 'malformed') {
      // A batch that a replay garbles stays missing, and counts as that.
      if (event.from === 'live') this.#noteUnreadable();
      this.#warnMalformed(event.reason, null);
    } else if (event.kind === 'gap') {
      this.#takeGap(event.lostBatches, event.clears);
    } else if (event.kind === 'restart') {
      this.#takeRestart(event.clears);
    } else if (event.kind === 'absent') {
      const fields = { endpoint, seconds: event.seconds };
      this.#warner.warn('engine_absent', fields, 'no engine yet, waiting on: check its address');
    } else {
      this.#logger.info({ endpoint }, `engine ${event.kind}`);
    }
  }

  #takeGap(lostBatches: number, clears: boolean): void {
    const { endpoint, replay } = this.listener;
    const fields = { endpoint, lostBatches, cleared: clears };
    this.#warner.warn('engine_gap', fields, 'batches of the engine are lost');
    if (clears) this.#clear('gap');
    // Where losses clear, what was lost before the first batch has misled nobody either.
    if (this.#config.onEngineGap === 'clear') return;
    for (const { metrics } of this.relays) {
      if (replay === 'none') metrics.engineGaps++;
      else metrics.replayLosses++;
    }
  }

  #takeRestart(clears: boolean): void {
    const fields = { endpoint: this.listener.endpoint, cleared: clears };
    this.#warner.warn('engine_restart', fields, 'the engine has restarted');
    if (clears) this.#clear('restart');
    else if (this.#config.onEngineRestart === 'clear') {
      // Nothing has left since the last clear.
      for (const { metrics } of this.relays) metrics.noteAgreement();
    }
  }

  #clear(cause: OwnClearCause): void {
    arena.reset();
    for (const relay of this.relays) relay.clear(cause);
  }

  /** Which rank it was for cannot be told, so all of this socket may have lost something. */
  #noteUnreadable(): void {
    for (const { metrics } of this.relays) metrics.unreadableMessages++;
  }

  #replayEndpoint(): string | null {
    const { replayEndpoint, onEngineGap, dpRank } = this.#config;
    if (replayEndpoint === null || onEngineGap === 'count') return null;
    return rankEndpoint(replayEndpoint, this.#first.dpRank - dpRank);
  }

  #warnMalformed(reason: string, payloadBytes: number | null): void {
    const fields = { endpoint: this.listener.endpoint, reason, payloadBytes };
    this.#warner.warn(`malformed_${reason}`, fields, 'an engine message was dropped');
  }
}

/** `strict` passes on whatever comes, in whatever order. */
function sequencingOf(config: WorkerConfig): EngineListenerOptions['sequencing'] {
  const { compat, onEngineGap, onEngineRestart } = config;
  if (!diverges(compat, 'lost-batches')) return null;
  return {
    clearsOnGap: onEngineGap === 'clear',
    clearsOnRestart: diverges(compat, 'restart') && onEngineRestart === 'clear',
    holdBatches: config.replayHoldBatches,
    holdBytes: config.replayHoldBytes,
    idleMs: config.replayIdleMs,
    cooldownMs: config.replayCooldownMs,
  };
}
