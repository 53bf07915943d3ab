/**
 * Presence: this relay in discovery: which worker it stands beside, its sources, and who contradicts them.
 *
 * Finds      the worker by the instances of the endpoint, unless its id is given; a successor begins a new
 *            incarnation, and while there is none nothing stands and nothing is published.
 * Announces  each rank's source once everything around it stands.
 * Concedes   a rank to another source of the same worker and rank, if told so, until that is gone.
 * Waits      for what stands already to be told before it writes: of two sources routers follow neither.
 */
import { oneLine } from '../errors.ts';
import type { Warner } from '../log.ts';
import type { DegradedCode } from '../metrics/degraded.ts';
import type { DiscoveryMetrics } from '../metrics/discovery-metrics.ts';
import {
  instanceIdOf,
  instancePrefix,
  type KvEndpoint,
  sourcePrefix,
} from '../protocol/discovery-keys.ts';
import { readSourceClaim, type SourceClaim } from '../protocol/discovery-records.ts';
import { readModelCard } from '../protocol/model-card.ts';
import { cardProblems } from './card-check.ts';
import type { Discovery, Records } from './discovery/discovery.ts';
import { chooseWorker, type WorkerChoice } from './discovery/worker-choice.ts';
import { LoadAnnouncer, type PresentLoad } from './load/load-announcer.ts';
import { isSameMark, type PresentSource, RankPresence } from './rank-presence.ts';
import type { RecoveryEndpoint } from './recovery-endpoint.ts';

export interface PresenceDeps {
  readonly discovery: Discovery;
  readonly endpoint: KvEndpoint;
  /** Null: the worker that discovery shows. */
  readonly workerId: bigint | null;
  readonly onAmbiguous: 'withdraw' | 'stay';
  /** Tokens a block, held against the worker's model card. */
  readonly blockSize: number;
  /** Name of this host, part of the mark on our records. */
  readonly host: string;
  readonly sources: readonly PresentSource[];
  /** Null: the sources are live-only. */
  readonly recovery: RecoveryEndpoint | null;
  /** Null where no load is published. */
  readonly load: PresentLoad | null;
  readonly metrics: DiscoveryMetrics;
  readonly warner: Pick<Warner, 'warn'>;
  /** Told the worker whenever it changes; null while there is none. */
  readonly onWorker: (workerId: bigint | null) => void;
}

export interface PresenceNotice {
  readonly code: DegradedCode;
  readonly detail?: string;
}

/** Most workers that are listed by name. */
const MAX_LISTED = 8;

export class Presence {
  readonly #deps: PresenceDeps;
  readonly #ranks: readonly RankPresence[];
  readonly #load: LoadAnnouncer | null;
  /** Null until told. */
  #workerIds: readonly bigint[] | null = null;
  #claims: readonly SourceClaim[] | null = null;
  /** Model cards of the endpoint's workers, by key. */
  #cards: Records = new Map();
  /** Problems that have been told, so that no change of a card tells them again. */
  #toldOfCard = '';
  #choice: WorkerChoice | null = null;
  #lastWorkerId: bigint | null = null;
  #isStopped = false;

  constructor(deps: PresenceDeps) {
    const { discovery, endpoint, sources, load } = deps;
    this.#deps = deps;
    this.#load = load && new LoadAnnouncer({ ...deps, load });
    this.#ranks = sources.map(
      (source) => new RankPresence({ ...deps, source, onReclaim: () => this.#evaluate() }),
    );
    discovery.onLost(() => this.renew());
    const instances = instancePrefix(endpoint);
    discovery.watch('v1/instances', instances, (records) => {
      const ids = [...records.keys()].map((key) => instanceIdOf(key, instances));
      this.#workerIds = ids.filter((id) => id !== null);
      this.#evaluate();
    });
    discovery.watch('v1/mdc', instances, (records) => {
      this.#cards = records;
      this.#checkCards();
    });
    discovery.watch('v1/event_sources', sourcePrefix(endpoint), (records) => {
      this.#claims = this.#readClaims(records);
      this.#evaluate();
    });
  }

  /** Begins a new incarnation of every source that stands. */
  renew(): void {
    if (this.#isStopped) return;
    for (const rank of this.#ranks) rank.renew();
    this.#load?.renew();
  }

  /** The same for one rank. */
  renewRank(dpRank: number): void {
    if (!this.#isStopped) this.#rankOf(dpRank)?.renew();
  }

  async start(): Promise<void> {
    await this.#deps.discovery.start();
  }

  /** Withdraws everything, for at most `maxMs`; what then still stands expires. */
  async stop(maxMs: number): Promise<void> {
    this.#isStopped = true;
    const withdrawals = this.#ranks.map((rank) => rank.withdraw());
    if (this.#load !== null) withdrawals.push(this.#load.serve(null));
    const withdrawn = Promise.all(withdrawals).then(() => this.#deps.discovery.stop());
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxMs);
    });
    await Promise.race([withdrawn, limit]);
    clearTimeout(timer);
  }

  /** What the start still waits for. */
  get waitingFor(): string[] {
    const { discovery } = this.#deps;
    if (discovery.kind === 'none') return [];
    if (this.#choice?.kind !== 'found') return ['the worker in discovery'];
    const stands = discovery.isSettled && this.#ranks.every(({ isAnnounced }) => isAnnounced);
    return stands ? [] : ['the discovery records'];
  }

  /** Whether routers know the rank's source, and whom to ask about it. */
  isRecoverable(dpRank: number): boolean {
    return this.#rankOf(dpRank)?.isRecoverable === true;
  }

  /** What is wrong with one rank's presence, in the order of the codes. */
  notices(dpRank: number): PresenceNotice[] {
    const { discovery } = this.#deps;
    const rank = this.#rankOf(dpRank);
    const notices: PresenceNotice[] = [];
    const choice = this.#choice;
    if (rank?.isContested || choice?.kind === 'claimed') notices.push({ code: 'ambiguous_source' });
    if (choice?.kind === 'missing') notices.push({ code: 'worker_missing' });
    if (choice?.kind === 'ambiguous') {
      notices.push({ code: 'worker_ambiguous', detail: listed(choice.workerIds) });
    }
    if (!discovery.isAvailable || !discovery.isSettled || rank?.isOnItsWay) {
      notices.push({ code: 'discovery_unavailable' });
    }
    if (rank?.advertisesLoopback) notices.push({ code: 'advertises_loopback' });
    return notices;
  }

  #rankOf(dpRank: number): RankPresence | undefined {
    return this.#ranks.find(({ source }) => source.dpRank === dpRank);
  }

  #evaluate(): void {
    if (this.#isStopped || this.#workerIds === null || this.#claims === null) return;
    const choice = this.#choose(this.#workerIds, this.#claims);
    const workerId = choice.kind === 'found' ? choice.workerId : null;
    const before = this.#choice;
    this.#choice = choice;
    if (workerId !== null) this.#lastWorkerId = workerId;
    this.#tellChange(before, choice);
    this.#checkCards();
    void this.#load?.serve(workerId);
    for (const rank of this.#ranks) {
      if (workerId === null) rank.leave();
      else rank.serve(workerId, this.#claims);
    }
  }

  #choose(workerIds: readonly bigint[], claims: readonly SourceClaim[]): WorkerChoice {
    const { workerId, onAmbiguous } = this.#deps;
    if (workerId !== null) return { kind: 'found', workerId };
    const claimed = new Set(
      claims.filter((claim) => this.#isForeign(claim)).map((claim) => claim.workerId),
    );
    const choice = chooseWorker({ current: this.#lastWorkerId, workerIds, claimed });
    if (choice.kind !== 'claimed' || onAmbiguous === 'withdraw') return choice;
    return { kind: 'found', workerId: choice.workerId };
  }

  /** Of somebody else, for a rank of ours; what we left behind in an earlier life is no claim. */
  #isForeign(claim: SourceClaim): boolean {
    const rank = this.#rankOf(claim.dpRank);
    return rank !== undefined && !rank.isOwn(claim) && !isSameMark(claim.mark, rank.mark);
  }

  #readClaims(records: Records): SourceClaim[] {
    const claims: SourceClaim[] = [];
    for (const value of records.values()) {
      const claim = readSourceClaim(value, this.#deps.endpoint);
      if (claim !== null) claims.push(claim);
    }
    return claims;
  }

  /** Routers say nothing where they ignore a source, so it is said here. */
  #checkCards(): void {
    const { endpoint, blockSize, sources, warner } = this.#deps;
    const prefix = instancePrefix(endpoint);
    const problems = [...this.#cards].flatMap(([key, value]) => {
      const card = this.#isOfWorker(instanceIdOf(key, prefix)) ? readModelCard(value) : null;
      const expected = { endpoint, blockSize, dpRanks: sources.map(({ dpRank }) => dpRank) };
      return card === null ? [] : cardProblems(card, expected);
    });
    const told = problems.map(({ cause }) => cause).join();
    if (told === this.#toldOfCard) return;
    this.#toldOfCard = told;
    for (const { cause, fields, message } of problems) warner.warn(cause, fields, message);
  }

  #isOfWorker(workerId: bigint | null): boolean {
    return this.#choice?.kind === 'found' && workerId === this.#choice.workerId;
  }

  #tellChange(before: WorkerChoice | null, now: WorkerChoice): void {
    const { onWorker, warner } = this.#deps;
    const workerId = now.kind === 'found' ? now.workerId : null;
    if ((before?.kind === 'found' ? before.workerId : null) !== workerId) onWorker(workerId);
    if (before?.kind === now.kind) return;
    if (now.kind === 'ambiguous') {
      const fields = { workers: listed(now.workerIds) };
      warner.warn('worker_ambiguous', fields, 'several workers: set --worker-id to the one here');
    } else if (now.kind === 'claimed') {
      const fields = { workerId: now.workerId };
      warner.warn('ambiguous_source', fields, 'the worker has a source of somebody else');
    } else if (now.kind === 'missing') {
      warner.warn('worker_missing', {}, 'no worker in discovery, nothing is published');
    }
  }
}

/** `1f, 2a and 3 more`, in hex as in keys. */
function listed(workerIds: readonly bigint[]): string {
  const shown = workerIds.slice(0, MAX_LISTED).map((workerId) => workerId.toString(16));
  const rest = workerIds.length - shown.length;
  return oneLine(`${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`);
}
