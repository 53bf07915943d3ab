/** One rank's index as HTTP asks for it. */
import type { WorkerConfig } from './config/worker-config.ts';
import { type Prompt, promptHashes } from './hashing/prompt-hashes.ts';
import type { LocalIndexer } from './indexer/local-indexer.ts';
import { arena } from './kernel/arena.ts';
import type { Relay } from './relay.ts';
import type { EventsReading, IndexedRank, PromptMatch } from './status/index-source.ts';

/** Null for a relay without an index. */
export function indexedRank(relay: Relay, config: WorkerConfig): IndexedRank | null {
  const { indexer } = relay;
  if (indexer === null) return null;
  return {
    dpRank: relay.dpRank,
    events: (start, end, bounds) => readEvents(indexer, start, end, bounds),
    dump: async () => (await indexer.dump())?.events ?? null,
    match: (prompt) => matchPrompt(indexer, prompt, config),
  };
}

function readEvents(
  { ring }: LocalIndexer,
  start: number | null,
  end: number | null,
  { maxEvents, maxBytes }: { readonly maxEvents: number; readonly maxBytes: number },
): EventsReading {
  const { lastEventId, firstEventId, isEmpty } = ring;
  if (start !== null && end !== null && end < start) return { kind: 'invalid_range', lastEventId };
  if (start === null || isEmpty || start < firstEventId) return { kind: 'tree_dump', lastEventId };
  if (start > lastEventId) return { kind: 'too_new', lastEventId };
  const wanted = Math.min(end ?? lastEventId, lastEventId) - start + 1;
  const events = ring.copySome(start, Math.min(wanted, maxEvents), maxBytes);
  const next = events.length < wanted ? start + events.length : null;
  return { kind: 'events', lastEventId, events, nextEventId: next };
}

function matchPrompt(
  { blocks }: LocalIndexer,
  prompt: Prompt,
  { blockSize, imageTokenId, videoTokenId }: WorkerConfig,
): readonly PromptMatch[] {
  // No batch is under way while HTTP is answered: the lists of the last one have been used.
  arena.reset();
  return blocks.match(promptHashes(prompt, blockSize, { imageTokenId, videoTokenId }));
}
