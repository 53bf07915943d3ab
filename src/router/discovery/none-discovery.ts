/** No discovery: nothing is written, nobody is there. */
import type { Bucket } from '../../protocol/discovery-keys.ts';
import type { Discovery, Records } from './discovery.ts';

const NOTHING: Records = new Map();

export class NoneDiscovery implements Discovery {
  readonly kind = 'none';
  readonly isAvailable = true;
  readonly isSettled = true;
  readonly #listeners: ((records: Records) => void)[] = [];

  async start(): Promise<void> {
    for (const onRecords of this.#listeners) onRecords(NOTHING);
  }

  async put(): Promise<void> {}

  async withdraw(): Promise<void> {}

  async list(): Promise<Records> {
    return NOTHING;
  }

  async evict(): Promise<void> {}

  watch(_bucket: Bucket, _prefix: string, onRecords: (records: Records) => void): void {
    this.#listeners.push(onRecords);
  }

  onLost(): void {}

  async stop(): Promise<void> {}
}
