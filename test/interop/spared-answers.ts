/**
 * Random losses, but none from the message that shows a router its gap until the gap is repaired: of what is
 * lost beside an answer no router asks again. Nor is anything lost at the end, so that the last gap shows.
 */
import { onTestFinished } from 'vitest';
import { Loss } from './loss.ts';
import { answersOf, type RelayHere } from './router-trial.ts';

const LOOK_MS = 10;
/** An answer of a few events is applied long before. */
const APPLIED_MS = 100;

export class SparedAnswers {
  readonly loss: Loss;
  #gap: 'none' | 'hidden' | 'shown' = 'none';
  #answersBefore = 0;
  #answers = 0;
  #busyAtMs = 0;
  #isWatching = false;

  readonly #lossyMessages: number;

  /** Loses that share of the first `lossyMessages` messages. */
  constructor(share: number, seed: string, lossyMessages: number) {
    this.loss = new Loss(share, seed);
    this.#lossyMessages = lossyMessages;
  }

  /** Nothing is lost before. */
  watch(relay: RelayHere): void {
    this.#isWatching = true;
    const watching = this.#look(relay);
    onTestFinished(async () => {
      this.#isWatching = false;
      await watching;
    });
  }

  /** Whether the next message is lost. */
  readonly drops = (): boolean => {
    const isQuiet = performance.now() - this.#busyAtMs > APPLIED_MS;
    if (this.#gap === 'shown' && this.#answers > this.#answersBefore && isQuiet) this.#gap = 'none';
    const { loss } = this;
    const isOver = loss.passed + loss.dropped >= this.#lossyMessages;
    if (isOver || !this.#isWatching || this.#gap === 'shown') {
      loss.passed++;
      return false;
    }
    if (loss.takesNext()) {
      this.#gap = 'hidden';
      return true;
    }
    if (this.#gap === 'hidden') {
      this.#gap = 'shown';
      this.#answersBefore = this.#answers;
    }
    return false;
  };

  async #look(relay: RelayHere): Promise<void> {
    while (this.#isWatching) {
      const answers = await answersOf(relay, 'events');
      if (answers !== this.#answers || relay.answersInFlight > 0)
        this.#busyAtMs = performance.now();
      this.#answers = answers;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
