/** Turns of the event loop: how much a reader of messages does in one, and when it has nothing left to do. */

/** Messages and time after which a reader lets timers and other sockets have their turn. */
export const TURN_MESSAGES = 64;
export const TURN_MS = 4;

/** A reader's time in one turn of the event loop. */
export class ReaderTurn {
  isRunning = false;
  #startMs = 0;
  readonly #end: () => void;

  /** `onEnd` is called when the loop's turn is over. */
  constructor(onEnd: () => void = () => undefined) {
    this.#end = () => {
      this.isRunning = false;
      onEnd();
    };
  }

  begin(): void {
    this.isRunning = true;
    this.#startMs = performance.now();
    setImmediate(this.#end);
  }

  /** Whether at `nowMs`, on the monotonic clock, it has had its time. */
  isOver(nowMs: number): boolean {
    return nowMs - this.#startMs >= TURN_MS;
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * Resolves once a whole turn has passed in which nothing waited and no message came; `maxMs` later in any case.
 *
 * One that looks like it is not enough: it may begin behind the place where sockets are read, and libzmq hands out
 * nothing for a moment behind 512 messages.
 */
export async function settled(
  reader: { readonly hasWaiting: boolean; readonly messageCount: number },
  maxMs: number,
): Promise<void> {
  const deadlineMs = performance.now() + maxMs;
  for (let idleTurns = 0; idleTurns < 2; ) {
    const before = reader.messageCount;
    await nextTurn();
    const isIdle = !reader.hasWaiting && reader.messageCount === before;
    idleTurns = isIdle ? idleTurns + 1 : 0;
    if (performance.now() >= deadlineMs) return;
  }
}
