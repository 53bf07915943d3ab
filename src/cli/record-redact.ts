/**
 * Redactor: an engine message without what users wrote or are called, still a message to a relay.
 *
 * Keeps    times, ranks, block and parent hashes, block sizes, media, groups, kinds, localities.
 * Zeros    token ids, of the same count.
 * Drops    topics, adapter names and ids, salts, extra keys, images, session ids, lookahead tokens.
 * Unknown  only what is known to be harmless is written: other keys go, other slots become nil,
 *          other words UNKNOWN, an unknown tag stays an unknown tag. A message that cannot be read
 *          stays one, without its bytes.
 * Throws   never.
 */
import { DecodeFault } from '../engines/decode-fault.ts';
import { MsgpackCursor } from '../engines/msgpack-cursor.ts';
import {
  isKnownWord,
  MAX_WORD_BYTES,
  OTHER_SLOTS,
  RULE_OF_KEY,
  type Rule,
  SLOTS_OF_TAG,
  UNKNOWN_WORD,
} from './record-redact-rules.ts';

const NIL = Buffer.from([0xc0]);
/** A byte that is never MessagePack. */
const UNREADABLE = Buffer.from([0xc1]);
const ZERO = Buffer.from([0]);
const ZERO_PAIR = Buffer.from([0x92, 0, 0]);
const SEQUENCE_BYTES = 8;
const MAX_HASH_BYTES = 64;

export class Redactor {
  readonly #walker = new RedactingCursor();

  redact(frames: readonly Uint8Array[]): readonly Uint8Array[] {
    const [, sequence, payload] = frames;
    if (frames.length !== 3 || sequence === undefined || payload === undefined) {
      return frames.map(() => Buffer.alloc(0));
    }
    const number = sequence.length === SEQUENCE_BYTES ? sequence : Buffer.alloc(0);
    return [Buffer.alloc(0), number, this.#walker.redactBatch(payload)];
  }
}

class RedactingCursor extends MsgpackCursor {
  #out: Uint8Array[] = [];

  redactBatch(payload: Uint8Array): Buffer {
    this.#out = [];
    try {
      this.open(payload);
      this.#batch();
      return Buffer.concat(this.#out);
    } catch (error) {
      if (error instanceof DecodeFault) return UNREADABLE;
      throw error;
    } finally {
      this.close();
      this.#out = [];
    }
  }

  #batch(): void {
    const count = this.openArray();
    this.#putHeader('array', count);
    for (let index = 0; index < count; index++) {
      if (index === 0) this.#copyNumber();
      else if (index === 1) this.#events();
      else if (index === 2) this.#copyIf(this.isInteger());
      else this.#drop();
    }
    this.closeContainer();
  }

  #events(): void {
    if (!this.isArray()) {
      this.#drop();
      return;
    }
    const count = this.openArray();
    this.#putHeader('array', count);
    for (let index = 0; index < count; index++) {
      if (this.isMap()) this.#mapEvent();
      else if (this.isArray()) this.#arrayEvent();
      else this.#drop();
    }
    this.closeContainer();
  }

  #mapEvent(): void {
    const pairs = this.openMap();
    const outside = this.#out;
    this.#out = [];
    let kept = 0;
    for (let pair = 0; pair < pairs; pair++) {
      const key = this.isText() ? this.#text() : this.#skipped();
      const rule = RULE_OF_KEY.get(key);
      if (rule === undefined) {
        this.skip();
        continue;
      }
      kept++;
      this.#putText(key);
      this.#value(rule);
    }
    this.closeContainer();
    const inside = this.#out;
    this.#out = outside;
    this.#putHeader('map', kept);
    for (const bytes of inside) this.#out.push(bytes);
  }

  #arrayEvent(): void {
    const count = this.openArray();
    this.#putHeader('array', count);
    const slots = count > 0 && this.isText() ? this.#slots() : OTHER_SLOTS;
    for (let index = 0; index < count; index++) this.#value(slots[index] ?? 'none');
    this.closeContainer();
  }

  /** Of the event whose tag is at hand; consumes nothing. */
  #slots(): readonly Rule[] {
    const { position } = this;
    const tag = this.#text();
    this.position = position;
    return SLOTS_OF_TAG.get(tag) ?? OTHER_SLOTS;
  }

  #value(rule: Rule): void {
    if (rule === 'hashes') this.#hashes();
    else if (rule === 'tokens') this.#tokens();
    else if (rule === 'hash') this.#hash();
    else if (rule === 'word' || (rule === 'slot' && this.isText())) this.#word();
    else this.#copyIf((rule === 'integer' || rule === 'slot') && this.isInteger());
  }

  #hashes(): void {
    if (!this.isArray()) {
      this.#drop();
      return;
    }
    const count = this.openArray();
    this.#putHeader('array', count);
    for (let index = 0; index < count; index++) this.#hash();
    this.closeContainer();
  }

  /** As many zeros as there are ids, or pairs of zeros where they are pairs. */
  #tokens(): void {
    if (!this.isArray()) {
      this.#drop();
      return;
    }
    const count = this.openArray();
    const zero = count > 0 && this.isArray() ? ZERO_PAIR : ZERO;
    this.#putHeader('array', count);
    this.#out.push(Buffer.alloc(count * zero.length, zero));
    for (let index = 0; index < count; index++) this.skip();
    this.closeContainer();
  }

  #hash(): void {
    const { position } = this;
    const isDigest = this.isBin() && this.openText() <= MAX_HASH_BYTES;
    this.position = position;
    this.#copyIf(isDigest || this.isInteger());
  }

  #word(): void {
    if (!this.isText()) {
      this.#drop();
      return;
    }
    const word = this.#text();
    // An empty word is an absent one.
    this.#putText(word === '' || isKnownWord(word) ? word : UNKNOWN_WORD);
  }

  /** The text at hand, or the unknown word where it is longer than any word. */
  #text(): string {
    const length = this.openText();
    const start = this.position;
    this.consume(length);
    if (length > MAX_WORD_BYTES) return UNKNOWN_WORD;
    return Buffer.from(this.bytes.subarray(start, start + length)).toString('latin1');
  }

  #skipped(): string {
    this.skip();
    return '';
  }

  #copyNumber(): void {
    const marker = this.peek();
    this.#copyIf(this.isInteger() || marker === 0xca || marker === 0xcb);
  }

  /** The value as it is, or nil in its place. */
  #copyIf(isHarmless: boolean): void {
    const start = this.position;
    this.skip();
    this.#out.push(isHarmless ? this.bytes.subarray(start, this.position) : NIL);
  }

  #drop(): void {
    this.#copyIf(false);
  }

  #putText(text: string): void {
    this.#out.push(Buffer.from([0xa0 | text.length]), Buffer.from(text, 'latin1'));
  }

  #putHeader(kind: 'array' | 'map', count: number): void {
    const header = Buffer.alloc(5);
    header.writeUInt8(kind === 'array' ? 0xdd : 0xdf, 0);
    header.writeUInt32BE(count, 1);
    this.#out.push(header);
  }
}
