/** Frames of ZMTP 3 as a publisher puts them on the wire, and the messages of a reader as frames again. */
import type { WireMessage } from '../../src/connections/zmtp/frame-reader.ts';

export interface FrameForm {
  readonly isMore?: boolean;
  readonly isCommand?: boolean;
  /** In place of what the length asks for. */
  readonly isLong?: boolean;
}

export function wireFrame(body: Uint8Array, form: FrameForm = {}): Buffer {
  const { isMore = false, isCommand = false, isLong = body.length > 255 } = form;
  const flags = (isMore ? 1 : 0) | (isLong ? 2 : 0) | (isCommand ? 4 : 0);
  const head = isLong ? Buffer.alloc(9) : Buffer.alloc(2);
  head[0] = flags;
  if (isLong) head.writeBigUInt64BE(BigInt(body.length), 1);
  else head[1] = body.length;
  return Buffer.concat([head, body]);
}

export function wireMessage(...frames: readonly Uint8Array[]): Buffer {
  const last = frames.length - 1;
  return Buffer.concat(frames.map((frame, at) => wireFrame(frame, { isMore: at < last })));
}

/** A command: its name, and what follows that. */
export function wireCommand(name: string, rest: Uint8Array = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.of(name.length), Buffer.from(name), rest]);
  return wireFrame(body, { isCommand: true });
}

export function wireReady(socketType: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(socketType.length);
  const name = 'Socket-Type';
  return wireCommand(
    'READY',
    Buffer.concat([Buffer.of(name.length), Buffer.from(name), length, Buffer.from(socketType)]),
  );
}

export function wireGreeting(minor = 1, mechanism = 'NULL', major = 3): Buffer {
  const greeting = Buffer.alloc(64);
  greeting[0] = 0xff;
  greeting[9] = 0x7f;
  greeting[10] = major;
  greeting[11] = minor;
  greeting.write(mechanism, 12);
  return greeting;
}

/** The first three at most, as latin1. */
export function framesOf(message: WireMessage): string[] {
  const { slab, frameCount } = message;
  const places = [
    [message.firstAt, message.firstLength],
    [message.secondAt, message.secondLength],
    [message.thirdAt, message.thirdLength],
  ] as const;
  return places
    .slice(0, frameCount)
    .map(([at, length]) => slab.bytes.toString('latin1', at, at + length));
}
