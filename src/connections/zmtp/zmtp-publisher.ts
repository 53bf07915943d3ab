/**
 * ZmtpPublisher: messages of one topic to all subscribers, which connect to it, or which it connects to.
 *
 * Bound     a subscriber has a queue of its own from its link's beginning to its end.
 * Brokers   the queue outlives the link: what a lost one has not let through is sent again. One that has asked for nothing
 *           within RETURN_MS behind a new link has nobody who wants it: what waits is lost then. Links are made again for
 *           ever.
 * Slow      a subscriber whose queue is full loses what comes next; others do not notice.
 * Bounds    queues, and how many links others may make.
 */
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { InputBudget } from './input-budget.ts';
import { listen } from './listen.ts';
import type { Parcel } from './parcel.ts';
import { PublisherLink } from './publisher-link.ts';
import { RetryDelay } from './retry-delay.ts';
import { type QueueBounds, SendQueue } from './send-queue.ts';

export interface ZmtpPublisherOptions {
  readonly topic: string;
  /** Of each subscriber's queue. */
  readonly bounds: QueueBounds;
  /** Links that others have made, at most. */
  readonly maxPeers: number;
  /** A handshake is done, or a link that had one has ended. */
  readonly onPeers: () => void;
  /** Messages that waited for a broker whose subscribers did not come back. */
  readonly onLost: (messages: number) => void;
  /** One that came was sent away: there are as many as may be. */
  readonly onRefused: () => void;
}

interface Peer {
  readonly queue: SendQueue;
  link: PublisherLink | null;
  isWanted: boolean;
}

/** A subscriber's host that is gone is noticed after a minute. */
const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 };
/** Time in which a broker's subscribers come back to it. */
const RETURN_MS = 5000;
/** How long after the last byte a peer may take to say goodbye. */
const GOODBYE_MS = 200;
const DRAIN_CHECK_MS = 5;

export class ZmtpPublisher {
  readonly #options: ZmtpPublisherOptions;
  readonly #topic: Buffer;
  readonly #peers = new Set<Peer>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #budget = new InputBudget();
  #server: Server | null = null;
  /** Handshakes since the start, and those of them whose links have ended. */
  connects = 0;
  disconnects = 0;
  refusals = 0;

  constructor(options: ZmtpPublisherOptions) {
    this.#options = options;
    this.#topic = Buffer.from(options.topic);
  }

  /** With a handshake, now. */
  get peers(): number {
    return this.connects - this.disconnects;
  }

  /** The endpoint that is bound. Rejects with the system's error. */
  async bind(endpoint: string): Promise<string> {
    const server = createServer(SOCKET_OPTIONS, (socket) => this.#accept(socket));
    server.maxConnections = this.#options.maxPeers;
    server.on('drop', () => {
      this.refusals++;
      this.#options.onRefused();
    });
    const bound = await listen(server, endpoint);
    this.#server = server;
    return bound;
  }

  connect(address: NetConnectOpts): void {
    this.#dial(this.#addPeer(), address, new RetryDelay());
  }

  /** How many of its messages were lost, one for each subscriber that had no room for it. Sent with the next flush(). */
  send(parcel: Parcel): number {
    let lost = 0;
    for (const { isWanted, queue } of this.#peers) {
      if (isWanted && !queue.offer(parcel)) lost += parcel.messages;
    }
    return lost;
  }

  flush(): void {
    for (const { link } of this.#peers) link?.pump();
  }

  /** Sends what waits for at most `lingerMs`; how many messages did not leave, one for each subscriber. */
  async close(lingerMs: number): Promise<number> {
    const deadlineMs = performance.now() + lingerMs;
    while (performance.now() < deadlineMs && this.#isBusy) await sleep(DRAIN_CHECK_MS);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#budget.stop();
    this.#server?.close();
    const links = [...this.#peers].flatMap(({ link }) => link ?? []);
    if (lingerMs > 0 && links.length > 0) {
      const goodbye = sleep(GOODBYE_MS);
      await Promise.race([Promise.all(links.map((link) => link.finish())), goodbye]);
    }
    let lost = 0;
    for (const { queue, link } of this.#peers) {
      link?.close();
      queue.rewind();
      lost += queue.clear();
    }
    this.#peers.clear();
    return lost;
  }

  /** Something waits for a peer that reads, or may yet. */
  get #isBusy(): boolean {
    for (const { link, queue } of this.#peers) {
      if (link?.isReady && !queue.isEmpty) return true;
    }
    return false;
  }

  #addPeer(): Peer {
    const peer: Peer = { queue: new SendQueue(this.#options.bounds), link: null, isWanted: false };
    this.#peers.add(peer);
    return peer;
  }

  #accept(socket: Socket): void {
    const peer = this.#addPeer();
    this.#link(peer, socket, {
      onReady: () => undefined,
      onEnd: () => {
        peer.queue.clear();
        this.#peers.delete(peer);
      },
    });
  }

  #dial(peer: Peer, address: NetConnectOpts, retryDelay: RetryDelay): void {
    this.#link(peer, connect({ ...address, ...SOCKET_OPTIONS }), {
      onReady: () => {
        retryDelay.reset();
        const { link } = peer;
        this.#later(RETURN_MS, () => {
          if (link === null || peer.link !== link || link.isWanted) return;
          peer.isWanted = false;
          const lost = peer.queue.clear();
          if (lost > 0) this.#options.onLost(lost);
        });
      },
      onEnd: () => {
        this.#later(retryDelay.take(), () => this.#dial(peer, address, retryDelay));
      },
    });
  }

  #link(peer: Peer, socket: Socket, told: { onReady: () => void; onEnd: () => void }): void {
    let isReady = false;
    const link = new PublisherLink({
      socket,
      topic: this.#topic,
      queue: peer.queue,
      budget: this.#budget,
      onReady: () => {
        isReady = true;
        this.connects++;
        told.onReady();
        this.#options.onPeers();
      },
      onInterest: (isWanted) => {
        peer.isWanted = isWanted;
        // Who says so has no use for what waits.
        if (!isWanted) peer.queue.clear();
        link.pump();
      },
      onEnd: () => {
        peer.link = null;
        peer.queue.rewind();
        told.onEnd();
        if (!isReady) return;
        this.disconnects++;
        this.#options.onPeers();
      },
    });
    peer.link = link;
  }

  #later(delayMs: number, callback: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, delayMs);
    this.#timers.add(timer);
  }
}
