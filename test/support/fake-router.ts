/**
 * A router's side of the recovery protocol: asks over TCP, is called back, and keeps every byte.
 *
 * Closes   the response stream once it has read the answer, as a stock router does, unless told to keep
 *          it open or not to read at all.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { eventually } from './plane-collector.ts';
import { type QueryFields, requestFrame, requestPayload } from './router-requests.ts';

type Behaviour = 'close' | 'keep' | 'do not read';

export interface ReceivedMessage {
  readonly header: string;
  readonly body: Buffer;
}

export class ResponseReader {
  readonly socket: Socket;
  readonly messages: ReceivedMessage[] = [];
  bytes = 0;
  isClosed = false;
  #rest: Buffer[] = [];
  #restBytes = 0;

  readonly #onAnswer: (body: Buffer) => void;

  constructor(socket: Socket, behaviour: Behaviour, onAnswer: (body: Buffer) => void) {
    this.socket = socket;
    this.#onAnswer = onAnswer;
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
    });
    if (behaviour === 'do not read') socket.pause();
    else this.#read(behaviour);
  }

  #read(behaviour: Behaviour): void {
    const { socket } = this;
    socket.on('data', (chunk) => {
      this.bytes += chunk.length;
      this.#rest.push(chunk);
      this.#restBytes += chunk.length;
      this.#take();
      const answer = this.messages.find(({ body }) => body.length > 0);
      if (behaviour !== 'close' || answer === undefined || socket.writableEnded) return;
      this.#onAnswer(answer.body);
      socket.end();
    });
  }

  #take(): void {
    if (this.#restBytes < 24) return;
    const [first] = this.#rest;
    if (first !== undefined && first.length >= 24) {
      // A large answer is put together once, when all of it is there.
      const announced = 24 + Number(first.readBigUInt64BE(0) + first.readBigUInt64BE(8));
      if (announced > this.#restBytes) return;
    }
    let rest = Buffer.concat(this.#rest);
    while (rest.length >= 24) {
      const headerEnd = 24 + Number(rest.readBigUInt64BE(0));
      const end = headerEnd + Number(rest.readBigUInt64BE(8));
      if (rest.length < end) break;
      const header = rest.toString('utf8', 24, headerEnd);
      this.messages.push({ header, body: rest.subarray(headerEnd, end) });
      rest = rest.subarray(end);
    }
    this.#rest = [rest];
    this.#restBytes = rest.length;
  }
}

export class FakeRouter {
  readonly responses: ResponseReader[] = [];
  behaviour: Behaviour = 'close';
  /** Told an answer before its stream is closed. */
  onAnswer: (body: Buffer) => void = () => undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.responses.push(new ResponseReader(socket, this.behaviour, this.onAnswer));
    });
  }

  static async start(): Promise<FakeRouter> {
    const router = new FakeRouter();
    router.#server.listen(0, '127.0.0.1');
    await once(router.#server, 'listening');
    return router;
  }

  /** Where it wants to be called back. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Asks one thing over a connection of its own; the acknowledgement, and the answer's messages. */
  async ask(
    port: number,
    path: string,
    fields: QueryFields,
    codec: 'msgpack' | 'json' = 'msgpack',
  ): Promise<{ acknowledgement: string; response: ResponseReader | undefined }> {
    const before = this.responses.length;
    const client = await RouterClient.connect(port);
    client.send(requestFrame(path, requestPayload({ address: this.address, codec }, fields)));
    await client.acknowledged(1);
    client.close();
    const acknowledgement = client.acknowledgements[0] ?? 'none';
    if (acknowledgement !== '') return { acknowledgement, response: undefined };
    await eventually(() => this.responses[before]?.isClosed === true, 20_000);
    return { acknowledgement, response: this.responses[before] };
  }

  async close(): Promise<void> {
    for (const { socket } of this.responses) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A connection to the request plane. */
export class RouterClient {
  readonly socket: Socket;
  readonly acknowledgements: string[] = [];
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
    });
    socket.on('data', (chunk) => {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      while (this.#rest.length >= 4) {
        const end = 4 + this.#rest.readUInt32BE(0);
        if (this.#rest.length < end) break;
        this.acknowledgements.push(this.#rest.toString('utf8', 4, end));
        this.#rest = this.#rest.subarray(end);
      }
    });
  }

  static async connect(port: number): Promise<RouterClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RouterClient(socket);
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  async acknowledged(count: number): Promise<void> {
    await eventually(() => this.acknowledgements.length >= count || this.isClosed);
  }

  close(): void {
    this.socket.destroy();
  }
}
