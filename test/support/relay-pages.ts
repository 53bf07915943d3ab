/** What a running relay shows over HTTP, as trials look at it. */
import type { RankStatus, StatusSnapshot } from '../../src/status/status-source.ts';
import { parseExposition } from '../metrics/exposition.ts';

/** Most time that something of a relay takes to come about. */
export const READY_MS = 20_000;
const PASSED_MS = 30_000;

/** A line of `/api/dump`; u64 as decimal texts. */
interface DumpLine {
  readonly worker_id: string;
  readonly dp_rank: number;
  readonly storage_tier: string;
  readonly parent_hash: string | null;
  readonly block_hash: string;
  readonly tokens_hash: string;
}

export abstract class RelayPages {
  /** Without a slash at its end. */
  abstract get httpUrl(): string;

  /** Polls the status of the rank `offset` behind the first until it holds. */
  async reaches(
    holds: (rank: RankStatus, status: StatusSnapshot) => boolean,
    { offset = 0, timeoutMs = READY_MS }: { offset?: number; timeoutMs?: number } = {},
  ): Promise<StatusSnapshot> {
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const status = await this.status();
      const rank = status.ranks[offset];
      if (rank !== undefined && holds(rank, status)) return status;
      if (performance.now() > deadlineMs) {
        throw new Error(`still not so: ${String(holds)}\n${JSON.stringify(status)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Resolves once the rank `offset` behind the first has passed on the engine's batch with this number. */
  async passed(sequence: number, offset = 0): Promise<void> {
    const emitted = String(sequence);
    await this.reaches((rank) => rank.engine.emitted_seq === emitted, {
      offset,
      timeoutMs: PASSED_MS,
    });
  }

  async text(path: string): Promise<string> {
    // A connection that is kept can be closed in the moment of its next use, when this process was busy meanwhile.
    const headers = { connection: 'close' };
    return (await fetch(`${this.httpUrl}${path}`, { headers })).text();
  }

  async status(): Promise<StatusSnapshot> {
    return JSON.parse(await this.text('/api/status')) as StatusSnapshot;
  }

  /** Sum of the series of that name which have these labels. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const wanted = Object.entries(labels);
    const series = parseExposition(await this.text('/metrics')).filter(
      (sample) =>
        sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
    );
    if (series.length === 0) throw new Error(`no series ${name}`);
    return series.reduce((sum, { value }) => sum + value, 0);
  }

  /** Every block as `worker rank tier parent block tokens`, sorted; a root has no parent. */
  async blocks(): Promise<string[]> {
    const lines = await this.#dump();
    return lines
      .map((line) => {
        const { worker_id, dp_rank, storage_tier, parent_hash, block_hash, tokens_hash } = line;
        const parent = parent_hash ?? '';
        return [worker_id, dp_rank, storage_tier, parent, block_hash, tokens_hash].join(' ');
      })
      .sort();
  }

  /** Every block as `tier block`, sorted: what an engine calls it. */
  async blockNames(): Promise<string[]> {
    const lines = await this.#dump();
    return lines.map(({ storage_tier, block_hash }) => `${storage_tier} ${block_hash}`).sort();
  }

  async #dump(): Promise<DumpLine[]> {
    const lines = (await this.text('/api/dump')).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as DumpLine);
  }
}
