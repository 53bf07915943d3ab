/**
 * RouterAsking: a router's way to the recovery service and back: one connection to each relay, requests one
 * after the other on it, or NATS; answers over streams to a port of its own.
 */
import type { Socket } from 'node:net';
import { ResponseReader } from '../support/fake-router.ts';
import { requestFrame, requestPayload } from '../support/router-requests.ts';
import type { Random } from './random.ts';
import { type QueryAnswer, readAnswer } from './router-answer.ts';
import { RouterQuery } from './router-query.ts';
import type { RunningQuery, SourceTarget } from './router-rank.ts';
import type { SimulatedNats } from './simulated-nats.ts';
import type { SimulatedNet } from './simulated-net.ts';
import type { SimulatedSocket } from './simulated-socket.ts';

type Acknowledge = (text: string | null) => void;

export interface AskingPorts {
  readonly name: string;
  readonly net: SimulatedNet;
  /** The server's side of the relay's connection; null while no relay runs. */
  readonly nats: () => SimulatedNats | null;
  readonly random: Random;
  readonly log: (text: string) => void;
}

export interface Question {
  readonly target: SourceTarget;
  readonly rank: number;
  /** Null: a dump. */
  readonly startEventId: number | null;
  readonly onAnswer: (answer: QueryAnswer | null) => void;
}

export class RouterAsking {
  readonly #ports: AskingPorts;
  readonly #port: number;
  readonly #connections = new Map<number, RequestConnection>();
  readonly #sockets = new Set<SimulatedSocket>();
  /** Queries that wait for a stream, by its subject. */
  readonly #waiting = new Map<string, { query: RouterQuery; codec: 'msgpack' | 'json' }>();
  readonly #queries = new Set<RouterQuery>();
  #questions = 0;

  constructor(ports: AskingPorts) {
    this.#ports = ports;
    this.#port = ports.net.listen((socket) => this.#accept(socket));
  }

  ask({ target, rank, startEventId, onAnswer }: Question): RunningQuery {
    const { name, net, random, log } = this.#ports;
    const query = new RouterQuery(`${name}-${this.#questions++}`, net.clock, random.next() * 3, {
      request: (subject, onAcknowledged) => {
        log(
          `${name} asks rank ${rank} from ${startEventId ?? 'nothing'}, attempt ${query.attempts}`,
        );
        const { codec, workerId } = target;
        this.#waiting.set(subject, { query, codec });
        const payload = requestPayload(
          { address: `127.0.0.1:${this.#port}`, subject, codec },
          {
            worker_id: workerId,
            dp_rank: rank,
            start_event_id: startEventId === null ? null : BigInt(startEventId),
          },
        );
        this.#send(target, payload, onAcknowledged);
      },
      onAnswer: (answer) => {
        log(`${name} has for rank ${rank}: ${answer === null ? 'no answer' : shown(answer)}`);
        this.#queries.delete(query);
        onAnswer(answer);
      },
      forget: (subject) => this.#waiting.delete(subject),
    });
    this.#queries.add(query);
    return query;
  }

  /** Its process is gone. */
  stop(): void {
    for (const query of this.#queries) query.cancel();
    for (const socket of this.#sockets) socket.destroy();
    for (const connection of this.#connections.values()) connection.close();
    this.#ports.net.close(this.#port);
  }

  #send({ transport }: SourceTarget, payload: Buffer, onAcknowledged: Acknowledge): void {
    const { net, nats } = this.#ports;
    if (transport.nats_tcp !== undefined) {
      nats()?.request(transport.nats_tcp, payload, onAcknowledged);
      return;
    }
    const [, port, path = ''] = /^[^/]*:(\d+)\/(.*)$/.exec(transport.tcp ?? '') ?? [];
    const known = this.#connections.get(Number(port));
    const connection = known?.isOpen ? known : new RequestConnection(net.ask(Number(port)));
    this.#connections.set(Number(port), connection);
    connection.send(requestFrame(path, payload), onAcknowledged);
  }

  #accept(socket: SimulatedSocket): void {
    this.#sockets.add(socket);
    const reader = new ResponseReader(socket as unknown as Socket, 'close', (body) => {
      const waiting = this.#waitingOn(reader);
      waiting?.query.takeStream(readAnswer(body, waiting.codec));
    });
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#waitingOn(reader)?.query.takeStream(null);
    });
  }

  #waitingOn({
    messages,
  }: ResponseReader): { query: RouterQuery; codec: 'msgpack' | 'json' } | null {
    const [handshake] = messages;
    if (handshake === undefined) return null;
    const { subject } = JSON.parse(handshake.header) as { subject: string };
    return this.#waiting.get(subject) ?? null;
  }
}

function shown(answer: QueryAnswer): string {
  return 'events' in answer
    ? `${answer.kind} of ${answer.events.length} up to ${answer.lastEventId}`
    : answer.kind;
}

/** Acknowledgements come in the order of the requests. */
class RequestConnection {
  readonly #socket: SimulatedSocket;
  readonly #waiting: Acknowledge[] = [];
  #rest: Buffer = Buffer.alloc(0);
  isOpen = true;

  constructor(socket: SimulatedSocket) {
    this.#socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('close', () => {
      this.isOpen = false;
      for (const acknowledge of this.#waiting.splice(0)) acknowledge(null);
    });
  }

  send(frame: Buffer, onAcknowledged: Acknowledge): void {
    this.#waiting.push(onAcknowledged);
    this.#socket.write(frame);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readUInt32BE(0);
      if (this.#rest.length < end) return;
      this.#waiting.shift()?.(this.#rest.toString('utf8', 4, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}
