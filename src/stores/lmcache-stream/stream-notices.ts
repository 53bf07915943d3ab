/** What an operator should know about the streams of LMCache's MP server. */
import type { SourceNotice } from '../store-source.ts';
import type { SubscriptionState } from './subscription.ts';

export interface StreamReading {
  readonly modelName: string;
  readonly state: SubscriptionState;
}

/** One a state, with the models that are in it. */
export function streamNotices(streams: readonly StreamReading[]): SourceNotice[] {
  const notices: SourceNotice[] = [];
  const add = (state: SubscriptionState, message: string, remedy: string): void => {
    const models = streams.filter((stream) => stream.state === state).map(nameOf);
    if (models.length > 0) notices.push({ message: `${message} (${models.join(', ')})`, remedy });
  };
  add(
    'unlinked',
    "No connection to LMCache's server",
    'Check --lmcache-stream and that the MP server listens there with its ZMQ transport',
  );
  add(
    'disabled',
    "LMCache's server records no KV events",
    'Start it with --kv-event-log-size above 0 and without --disable-observability',
  );
  add(
    'waiting',
    "LMCache's server gives no KV events",
    'It has to be LMCache 0.5.6 or newer, and nobody else may use --lmcache-stream-instance',
  );
  return notices;
}

function nameOf({ modelName }: StreamReading): string {
  return modelName;
}
