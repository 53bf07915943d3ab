/** LMCache's coordinator endpoint on a free port, with a state of its own. */
import { onTestFinished } from 'vitest';
import { CoordinatorSource } from '../../src/stores/lmcache/coordinator/coordinator-source.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { bodyOf, wireBatch, wireEntry } from './cache-batches.ts';

export interface CoordinatorEndpoint {
  readonly source: CoordinatorSource;
  readonly state: ObjectState;
  readonly url: string;
}

export async function startCoordinator(
  forward: string | null = null,
  maxBodyBytes: number = 1 << 20,
  port: number = 0,
): Promise<CoordinatorEndpoint> {
  const state = new ObjectState({
    maxObjects: 1000,
    maxKeyBytes: 1 << 20,
    maxScopes: 100,
    maxAttributeSets: 100,
    onChange: () => undefined,
  });
  const source = new CoordinatorSource({
    host: '127.0.0.1',
    port,
    forward,
    maxBodyBytes,
    maxHolders: 1000,
    instanceTimeoutSeconds: 30,
    state,
    reach: null,
    warner: { warn: () => undefined },
  });
  await source.start();
  onTestFinished(() => source.stop());
  return { source, state, url: source.reading().endpoint };
}

export const JSON_TYPE: Readonly<Record<string, string>> = { 'Content-Type': 'application/json' };
export const stored = (seq: number, chunk = `c${seq}`): Buffer =>
  bodyOf(wireBatch(seq, { entries: [wireEntry(chunk)] }));

export function post(
  url: string,
  body: Buffer | string,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): Promise<Response> {
  return fetch(`${url}/events`, { method: 'POST', body, headers });
}
