/** What a NATS server reads out of the bytes of a publisher. */

/** A message of a publisher: where its frame lies, and what it says. */
export interface Publication {
  readonly frame: Buffer;
  readonly subject: string;
  readonly message: Buffer;
}

/** Frames of `PUB` that lie side by side, all of them views; throws where there is anything else. */
export function publicationsIn(bytes: Uint8Array): Publication[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found: Publication[] = [];
  for (let at = 0; at < buffer.length; ) {
    const lineEnd = buffer.indexOf('\r\n', at);
    const line = buffer.toString('utf8', at, lineEnd);
    const match = /^PUB +([^ ]+) +(\d+)$/.exec(line);
    if (lineEnd < 0 || match === null) throw new Error(`no publication at ${at}: ${line}`);
    const start = lineEnd + 2;
    const end = start + Number(match[2]);
    if (buffer.toString('latin1', end, end + 2) !== '\r\n') throw new Error(`no end at ${end}`);
    const frame = buffer.subarray(at, end + 2);
    found.push({ frame, subject: match[1] ?? '', message: buffer.subarray(start, end) });
    at = end + 2;
  }
  return found;
}
