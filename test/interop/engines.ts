/** Which engines this run has: what `scripts/interop.mjs` has fetched, and with which Python. */
import { natsServerAvailable } from '../support/nats-server.ts';

/** What is no engine, but is fetched like one: the bridges run inside it. */
type BridgeHost = 'ai-dynamo' | 'lmcache';
/** Beside them the two halves of Mooncake Store. */
export type EngineName = 'vllm' | 'sglang' | BridgeHost | 'mooncake-master' | 'mooncake-client';

export interface EngineVersion {
  readonly engine: EngineName;
  readonly version: string;
}

/** Versions whose whole cache is run, not only the publisher; the programs in test/peers say so too. */
const NEWEST: Readonly<Record<EngineName, string>> = {
  vllm: '0.33.0',
  sglang: '0.5.23',
  'ai-dynamo': '1.6.1',
  'mooncake-master': '0.3.14',
  'mooncake-client': '0.3.13.post1',
  lmcache: '0.5.6',
};

/** Python with the packages of test/peers; empty where there is none. */
export const PYTHON: string = process.env.KVRELAY_INTEROP_PYTHON ?? '';

const ALL_FETCHED: readonly EngineVersion[] = (process.env.KVRELAY_INTEROP_ENGINES ?? '')
  .split(' ')
  .filter((item) => item !== '')
  .map((item) => {
    const [engine, version] = item.split('==');
    return { engine: engine as EngineName, version: version ?? '' };
  });

/** Nothing is fetched in a test; without an entry here a version does not run. */
export const FETCHED: readonly EngineVersion[] = ALL_FETCHED.filter(
  ({ engine }) => engine === 'vllm' || engine === 'sglang',
);

/** The newest version first, fetched or not: `canRun` tells. */
export function versionsOf(engine: BridgeHost): readonly EngineVersion[] {
  const newest = newestOf(engine);
  const isOlder = (have: EngineVersion): boolean =>
    have.engine === engine && have.version !== newest.version;
  return [newest, ...ALL_FETCHED.filter(isOlder)];
}

export function newestOf(engine: EngineName): EngineVersion {
  return { engine, version: NEWEST[engine] };
}

export function isNewest({ engine, version }: EngineVersion): boolean {
  return NEWEST[engine] === version;
}

/**
 * Whether a version can run here. With KVRELAY_REQUIRE_ALL=1 a missing one is an error, so that
 * nothing is skipped unseen.
 */
export function canRun({ engine, version }: EngineVersion): boolean {
  const isFetched = ALL_FETCHED.some((have) => have.engine === engine && have.version === version);
  if (isFetched && PYTHON !== '' && natsServerAvailable()) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error(
      `${engine} ${version} cannot run, and KVRELAY_REQUIRE_ALL=1 forbids to skip it`,
    );
  }
  return false;
}
