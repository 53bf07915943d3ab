/**
 * Stage: one pure step of the data path, and the operator that runs one without a clock.
 *
 * A stage keeps its state in itself and pushes what it has completed to the caller's `out`, in order.
 * The operator carries batches: inside a batch a plain loop runs, because a call of
 * every operator an event costs more than most steps do.
 */
import { Observable, type OperatorFunction } from 'rxjs';

export interface Stage<In, Out> {
  /** Sees all inputs of a batch before the first is pushed; for a stage that is faster for it. */
  lookAhead?(batch: readonly In[]): void;
  /** Takes one input, and appends to `out` what it completes. Never throws. */
  push(input: In, out: Out[]): void;
  /** Appends what is held back to `out`; called once, at the end of the stream. */
  flush(out: Out[]): void;
}

/** Runs a fresh stage for each subscription; a batch that yields nothing is not passed on. */
export function runStage<In, Out>(
  createStage: () => Stage<In, Out>,
): OperatorFunction<readonly In[], Out[]> {
  return (source) =>
    new Observable((subscriber) => {
      const stage = createStage();
      const pass = (out: Out[]): void => {
        if (out.length > 0) subscriber.next(out);
      };
      return source.subscribe({
        next(batch) {
          const out: Out[] = [];
          stage.lookAhead?.(batch);
          for (const input of batch) stage.push(input, out);
          pass(out);
        },
        error: (error: unknown) => subscriber.error(error),
        complete() {
          const out: Out[] = [];
          stage.flush(out);
          pass(out);
          subscriber.complete();
        },
      });
    });
}
