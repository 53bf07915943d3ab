/**
 * RankPresence: one rank's source in discovery, and whether another one contradicts it.
 *
 * Leftovers    of an earlier life of this relay are evicted before the source is announced; they are no
 *              contradiction, and whoever writes one again yields to us.
 * Comes back   from a concession after a random pause: two relays that see each other concede both, and
 *              one of them has to be first.
 */
import { isLoopbackEndpoint } from '../connections/advertised-endpoint.ts';
import type { Warner } from '../log.ts';
import type { DiscoveryMetrics } from '../metrics/discovery-metrics.ts';
import type { KvEndpoint } from '../protocol/discovery-keys.ts';
import type {
  ChannelTransport,
  RelayMark,
  SourceClaim,
  SourceIdentity,
} from '../protocol/discovery-records.ts';
import type { Discovery } from './discovery/discovery.ts';
import { SourceAnnouncer } from './discovery/source-announcer.ts';
import type { RecoveryEndpoint } from './recovery-endpoint.ts';

/** A rank's relay, as discovery needs it. */
export interface PresentSource {
  readonly dpRank: number;
  readonly engineEndpoint: string;
  /** Null while nothing is published. */
  readonly workerId: bigint | null;
  readonly publisherId: number;
  readonly channel: ChannelTransport | null;
  /** Begins a new incarnation: new publisher id, ids from 1. */
  openPublisher(workerId: bigint): void;
  closePublisher(): void;
}

export interface RankPresenceDeps {
  readonly source: PresentSource;
  readonly discovery: Discovery;
  readonly endpoint: KvEndpoint;
  readonly host: string;
  readonly onAmbiguous: 'withdraw' | 'stay';
  readonly recovery: RecoveryEndpoint | null;
  readonly metrics: DiscoveryMetrics;
  readonly warner: Pick<Warner, 'warn'>;
  /** Called when a pause is over and the source may be announced again. */
  readonly onReclaim: () => void;
}

const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 2000;

/** Publisher ids of before: their records may still be on their way out. */
const MAX_OWN_IDS = 64;

export class RankPresence {
  readonly source: PresentSource;
  readonly mark: RelayMark;
  readonly #deps: RankPresenceDeps;
  readonly #announcer: SourceAnnouncer;
  #ownIds: readonly bigint[] = [];
  #identity: SourceIdentity | null = null;
  #leftoverIds: ReadonlySet<bigint> = new Set();
  #pause: NodeJS.Timeout | undefined;
  /** Conceded, and not yet announced again. */
  #isHeldBack = false;
  /** Another source claims this worker and rank. */
  isContested = false;

  constructor(deps: RankPresenceDeps) {
    const { source, host } = deps;
    this.#deps = deps;
    this.source = source;
    this.mark = { host, engineEndpoint: source.engineEndpoint };
    this.#announcer = new SourceAnnouncer({ ...deps, mark: this.mark });
  }

  get isAnnounced(): boolean {
    return this.#announcer.isAnnounced;
  }

  /** Routers know it, and whom to ask about it. */
  get isRecoverable(): boolean {
    return this.#deps.discovery.kind !== 'none' && this.#announcer.isRecoverable;
  }

  /** Its records do not stand as they should yet. */
  get isOnItsWay(): boolean {
    return this.#announcer.isOnItsWay;
  }

  get advertisesLoopback(): boolean {
    const { discovery, source, recovery } = this.#deps;
    if (discovery.kind === 'none') return false;
    if (recovery?.isOnLoopback) return true;
    return source.channel?.kind === 'zmq' && isLoopbackEndpoint(source.channel.endpoint);
  }

  isOwn({ publisherId }: SourceClaim): boolean {
    return this.#ownIds.includes(publisherId);
  }

  /** Announces the source of this worker, or concedes it. */
  serve(workerId: bigint, claims: readonly SourceClaim[]): void {
    if (this.#identity?.workerId !== workerId) this.#begin(workerId, claims);
    const identity = this.#identity;
    if (identity === null) return;
    this.#weigh(claims.filter((claim) => this.#contradicts(claim, workerId)));
    const isClaimed = this.#deps.onAmbiguous === 'stay' || !this.#isHeldBack;
    if (isClaimed && this.advertisesLoopback) this.#warnLoopback();
    void this.#announcer.want({ source: identity, channel: this.source.channel, isClaimed });
  }

  /** Withdraws the source and announces its next incarnation, where there is one at all. */
  renew(): void {
    const before = this.#identity;
    if (before === null) return;
    this.source.openPublisher(before.workerId);
    const identity = this.#identify(before.workerId);
    const isClaimed = this.#deps.onAmbiguous === 'stay' || !this.#isHeldBack;
    void this.#announcer.want({ source: identity, channel: this.source.channel, isClaimed });
  }

  /** The worker is gone: nothing stands and nothing is published until there is one again. */
  leave(): void {
    if (this.#identity !== null) this.source.closePublisher();
    this.#identity = null;
    void this.withdraw();
  }

  /** Resolves once nothing stands any more; what is on its way still leaves. */
  async withdraw(): Promise<void> {
    clearTimeout(this.#pause);
    this.#pause = undefined;
    this.#isHeldBack = false;
    this.isContested = false;
    await this.#announcer.want(null);
  }

  #begin(workerId: bigint, claims: readonly SourceClaim[]): void {
    const { source } = this;
    if (source.workerId !== workerId) source.openPublisher(workerId);
    this.#identify(workerId);
    const leftovers = claims.filter(
      (claim) => this.#contradicts(claim, workerId) && isSameMark(claim.mark, this.mark),
    );
    this.#leftoverIds = new Set(leftovers.map((claim) => claim.publisherId));
    this.#isHeldBack = false;
    this.isContested = false;
  }

  #identify(workerId: bigint): SourceIdentity {
    const { dpRank, publisherId } = this.source;
    this.#ownIds = [...this.#ownIds, BigInt(publisherId)].slice(-MAX_OWN_IDS);
    this.#identity = { endpoint: this.#deps.endpoint, workerId, dpRank, publisherId };
    return this.#identity;
  }

  #contradicts(claim: SourceClaim, workerId: bigint): boolean {
    if (claim.workerId !== workerId || claim.dpRank !== this.source.dpRank) return false;
    return !this.isOwn(claim) && !this.#leftoverIds.has(claim.publisherId);
  }

  #weigh(contradictions: readonly SourceClaim[]): void {
    const [other] = contradictions;
    if (other !== undefined) {
      clearTimeout(this.#pause);
      this.#pause = undefined;
      this.#isHeldBack = true;
      if (!this.isContested) this.#tellContest(other);
      this.isContested = true;
      return;
    }
    this.isContested = false;
    if (!this.#isHeldBack) return;
    const pauseMs = MIN_PAUSE_MS + Math.random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined;
      this.#isHeldBack = false;
      this.#deps.onReclaim();
    }, pauseMs);
  }

  #tellContest({ workerId, publisherId }: SourceClaim): void {
    const { metrics, warner, onAmbiguous } = this.#deps;
    metrics.ambiguities++;
    const { dpRank } = this.source;
    const fields = { dpRank, workerId, publisherId, onAmbiguous };
    warner.warn('ambiguous_source', fields, 'another source claims this worker and rank');
  }

  #warnLoopback(): void {
    const { dpRank, channel } = this.source;
    this.#deps.warner.warn(
      'advertises_loopback',
      { dpRank, channel },
      'only routers on this host can reach the address that they are told',
    );
  }
}

/** Whether both are of one relay, in whichever of its lives. */
export function isSameMark(one: RelayMark | null, other: RelayMark): boolean {
  return one?.host === other.host && one.engineEndpoint === other.engineEndpoint;
}
