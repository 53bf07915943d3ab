/** A Mooncake source beside a master, and what it holds and tells. */
import { expect, onTestFinished } from 'vitest';
import { MooncakeSource } from '../../src/stores/mooncake/mooncake-source.ts';
import type { ObjectChange } from '../../src/stores/objects/object-change.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { MooncakeMasterStub } from './mooncake-master-stub.ts';
import { eventually } from './plane-collector.ts';

export interface MooncakeTrialOptions {
  readonly hasMaster?: boolean;
  readonly reconcileSeconds?: number;
  readonly maxHeldBytes?: number;
  /** Before the source starts. */
  readonly before?: (master: MooncakeMasterStub) => void;
}

export class MooncakeTrial {
  readonly master: MooncakeMasterStub;
  readonly state: ObjectState;
  readonly source: MooncakeSource;
  /** `+key media`, `-key media`, `x tenant cause`, as they came. */
  readonly told: string[] = [];
  readonly warnings: string[] = [];

  static async start(options: MooncakeTrialOptions = {}): Promise<MooncakeTrial> {
    const master = await MooncakeMasterStub.start();
    options.before?.(master);
    const trial = new MooncakeTrial(master, options);
    trial.source.start();
    onTestFinished(() => trial.source.stop());
    await master.subscribed();
    if (options.hasMaster !== false) await trial.reconciled();
    return trial;
  }

  /** With `key` put by the master, held here, and nothing under way. */
  static async startHolding(
    key: string,
    options: MooncakeTrialOptions = {},
  ): Promise<MooncakeTrial> {
    const trial = await MooncakeTrial.start(options);
    await trial.master.put(key);
    await trial.until(() => trial.held().length === 1);
    await trial.settled();
    return trial;
  }

  private constructor(master: MooncakeMasterStub, options: MooncakeTrialOptions) {
    const { hasMaster = true, reconcileSeconds = 0, maxHeldBytes = 1 << 20 } = options;
    this.master = master;
    this.state = new ObjectState({
      maxObjects: 100_000,
      maxKeyBytes: 1 << 24,
      maxScopes: 100,
      maxAttributeSets: 1000,
      onChange: (change) => this.told.push(shown(change)),
    });
    this.source = new MooncakeSource({
      endpoint: master.endpoint,
      master: hasMaster ? master.url : null,
      reconcileSeconds,
      maxHeldBytes,
      state: this.state,
      warner: { warn: (cause) => this.warnings.push(cause) },
      onLink: () => undefined,
    });
  }

  /** `key media` of a tenant, sorted. */
  held(tenantId = 'default', backendId = 'mooncake-1'): string[] {
    const scope = this.state.scope({ source: 'mooncake', backendId, tenantId });
    const rows: string[] = [];
    for (let entry = 0; scope !== null && entry < scope.table.entryEnd; entry++) {
      const object = this.state.objectAt(scope, entry);
      if (object !== null) {
        rows.push(`${Buffer.from(object.key).toString()} ${object.media.join()}`);
      }
    }
    return rows.sort();
  }

  async until(condition: () => boolean, what = 'the condition'): Promise<void> {
    if (await eventually(condition)) return;
    throw new Error(`${what} did not come; told: ${this.told.slice(-20).join('; ')}`);
  }

  /** Waits until so many messages have been read. */
  async taken(messages: number): Promise<void> {
    await this.until(() => this.source.metrics.messages >= messages, `message ${messages}`);
  }

  /** Waits for one more reconciliation than there have been when `from` was read. */
  async reconciled(from = 0): Promise<void> {
    const { reconciliations } = this.source.metrics;
    await this.until(() => reconciliations.complete > from, 'a reconciliation');
    await this.until(() => !this.source.isSuspect, 'the end of suspicion');
    await this.settled();
  }

  /** Nobody waits for a comparison. */
  async settled(): Promise<void> {
    await this.until(() => this.source.reading().reconciliation?.state === 'idle', 'the calm');
  }

  /** What is held is what the master holds. */
  expectAsMaster(): void {
    const rows = [...this.master.held]
      .filter(([, media]) => media.size > 0)
      .map(([key, media]) => `${key} ${[...media].sort().join()}`);
    expect(this.held()).toEqual(rows.sort());
  }
}

function shown(change: ObjectChange): string {
  if (change.type === 'cleared') return `x ${change.scope.tenantId} ${change.cause}`;
  const sign = change.type === 'stored' ? '+' : '-';
  return `${sign}${Buffer.from(change.key).toString()} ${change.media.join()}`.trimEnd();
}
