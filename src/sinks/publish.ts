/** Operator at the end of the data path: batches become messages on the plane, and the last ones leave. */
import { map, type Observable, type OperatorFunction, tap } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { RouterBatch } from '../protocol/router-event.ts';
import { MessageWriter, type MessageWriterOptions } from './message-writer.ts';
import type { RouterEventSink } from './sink.ts';

export interface PublishOptions extends MessageWriterOptions {
  /** Asks for what has been joined: it leaves before anything that is done next. */
  readonly flush$?: Observable<void>;
}

export function publish(
  sink: RouterEventSink,
  metrics: RelayMetrics,
  options: PublishOptions,
): OperatorFunction<RouterBatch, void> {
  return (source) => {
    const writer = new MessageWriter(sink, metrics, options);
    options.flush$?.subscribe(() => writer.flush());
    return source.pipe(
      map((batch) => writer.write(batch)),
      tap({ complete: () => writer.flush() }),
    );
  };
}
