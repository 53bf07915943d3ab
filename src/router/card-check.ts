/**
 * What of a worker's model card makes routers pass over this relay's sources, or mistake their blocks:
 * they say nothing about it, so the relay does.
 */
import type { KvEndpoint } from '../protocol/discovery-keys.ts';
import type { ModelCard } from '../protocol/model-card.ts';

export interface CardExpectation {
  readonly endpoint: KvEndpoint;
  readonly dpRanks: readonly number[];
  /** Tokens a block as this relay counts them. */
  readonly blockSize: number;
}

export interface CardProblem {
  readonly cause: 'card_ranks' | 'card_block_size' | 'card_endpoint';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export function cardProblems(card: ModelCard, expected: CardExpectation): CardProblem[] {
  const problems: CardProblem[] = [];
  const { dpRank, dpSize, blockSize, kvStateEndpoint } = card;
  const ignored = expected.dpRanks.filter((rank) => rank < dpRank || rank >= dpRank + dpSize);
  if (ignored.length > 0) {
    problems.push({
      cause: 'card_ranks',
      fields: { ignored, cardRank: dpRank, cardSize: dpSize },
      message: 'routers ignore ranks that the worker does not have: check --dp-rank and --dp-size',
    });
  }
  if (blockSize !== null && blockSize !== expected.blockSize) {
    problems.push({
      cause: 'card_block_size',
      fields: { blockSize: expected.blockSize, cardBlockSize: blockSize },
      message: "routers count blocks of the worker's size: set --block-size to it",
    });
  }
  const { namespace, component, endpoint } = expected.endpoint;
  const isOurs =
    kvStateEndpoint === null ||
    (kvStateEndpoint.namespace === namespace &&
      kvStateEndpoint.component === component &&
      kvStateEndpoint.endpoint === endpoint);
  if (!isOurs) {
    problems.push({
      cause: 'card_endpoint',
      fields: { ...kvStateEndpoint },
      message: 'routers look for sources at another endpoint: give its names to this relay',
    });
  }
  return problems;
}
