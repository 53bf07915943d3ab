/**
 * Takes the place of src/listener/engine-listener.ts, whose sockets it lacks: what a network would bring
 * is handed to it. The stream behind it, with its sequencer, is the real one.
 */
import { type Observable, Subject } from 'rxjs';
import type { EngineListenerOptions } from '../../src/listener/engine-listener.ts';
import { EngineStream, type ReplayTransport } from '../../src/listener/engine-stream.ts';
import { type EngineMessage, ownMessage } from '../../src/listener/frames.ts';
import type { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { EngineBatch, Witness } from './witness.ts';

export interface ListenerPorts {
  readonly clock: VirtualClock;
  readonly witness: Witness;
  readonly transport: ReplayTransport;
  readonly log: (text: string) => void;
}

export class SimulatedListener {
  readonly endpoint: string;
  isConnected = false;
  readonly #options: EngineListenerOptions;
  readonly #metrics: RelayMetrics;
  readonly #messages$ = new Subject<EngineMessage>();
  #ports: ListenerPorts | null = null;
  #stream: EngineStream | null = null;
  /** What a socket passed on last; it reads over the one before. */
  #lastLive: Uint8Array | null = null;
  /** The process it was part of has ended: nothing reaches it any more. */
  #isDead = false;

  constructor(options: EngineListenerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.endpoint = options.endpoint;
  }

  get messages$(): Observable<EngineMessage> {
    return this.#messages$;
  }

  get replay(): 'none' | 'idle' | 'running' {
    return this.#stream?.replay ?? 'none';
  }

  get idleMs(): number {
    return this.#options.sequencing?.idleMs ?? 0;
  }

  attach(ports: ListenerPorts): void {
    const { clock, witness, transport, log } = ports;
    const { sequencing, replayEndpoint, onEvent } = this.#options;
    if (sequencing === null) throw new Error('strict keeps no order');
    this.#ports = ports;
    this.#stream = new EngineStream({
      options: { ...sequencing, canAsk: replayEndpoint !== null },
      metrics: this.#metrics,
      transport,
      clock: {
        nowMs: () => clock.nowMs(),
        schedule: (callback, delayMs) =>
          clock.schedule(() => {
            if (!this.#isDead) callback();
          }, delayMs),
      },
      onMessage: (message) => {
        witness.notePassed(message.sequence, message.payload);
        this.#messages$.next(message);
      },
      onGap: (lostBatches, clears) => {
        log(`gap of ${lostBatches}${clears ? ', clears' : ''}`);
        witness.notePassage({ kind: 'gap', lostBatches, clears });
        onEvent?.({ kind: 'gap', lostBatches, clears });
      },
      onRestart: (clears) => {
        log(`restart seen${clears ? ', clears' : ''}`);
        witness.notePassage({ kind: 'restart', clears });
        onEvent?.({ kind: 'restart', clears });
      },
    });
  }

  kill(): void {
    this.#isDead = true;
    this.#stream = null;
    // Only for the kernel's memory, which all processes of all histories share.
    this.#messages$.complete();
  }

  takeLive(batch: EngineBatch): void {
    if (this.#isDead) return;
    this.#metrics.engineBatches++;
    const message = ownMessage(this.#messageOf(batch));
    this.#ports?.witness.noteLive(batch, () => this.#stream?.takeLive(message));
    this.#lastLive?.fill(0xff);
    this.#lastLive = message.payload;
  }

  takeReplayed(id: number, batch: EngineBatch, isWanted: boolean): void {
    if (this.#isDead) return;
    const message = this.#messageOf(batch);
    const take = (): void => this.#stream?.takeReplayed(id, message);
    if (isWanted) this.#ports?.witness.noteReplayed(batch, take);
    else take();
  }

  takeReplayEnd(id: number): void {
    this.#stream?.takeReplayEnd(id);
  }

  takeReplayFailure(id: number): void {
    this.#stream?.takeReplayFailure(id);
  }

  takeLink(isLinked: boolean): void {
    if (this.#isDead || this.isConnected === isLinked) return;
    this.isConnected = isLinked;
    this.#ports?.witness.noteLink(isLinked, this.replay !== 'none');
    this.#options.onEvent?.({ kind: isLinked ? 'connected' : 'disconnected' });
    this.#stream?.takeLink(isLinked);
  }

  #messageOf({ sequence, payload }: EngineBatch): EngineMessage {
    if (payload === null) throw new Error('a batch that has no bytes');
    const arrivedAtMs = this.#ports?.clock.nowMs() ?? 0;
    return { sequence: BigInt(sequence), payload, arrivedAtMs };
  }
}

export { SimulatedListener as EngineListener };
