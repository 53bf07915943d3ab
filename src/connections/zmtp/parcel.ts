/**
 * Parcel: messages that leave together, to all subscribers that there are.
 *
 * Memory   the frames are sent from where they lie. Their slabs are given back once the last holder has let go: whoever is to
 *          send the parcel holds it, and so does its maker until it has been offered to all.
 */
import type { MessageSlab } from '../../protocol/message-slab.ts';

export class Parcel {
  /** Bytes of whole messages, as they go over the wire. */
  readonly pieces: Buffer[] = [];
  readonly #slabs: MessageSlab[] = [];
  #holders = 1;
  messages = 0;
  bytes = 0;

  /** A message of its pieces; `slab`: what is to be given back for it. */
  add(pieces: readonly Buffer[], slab: MessageSlab | null): void {
    for (const piece of pieces) {
      this.pieces.push(piece);
      this.bytes += piece.length;
    }
    if (slab !== null) this.#slabs.push(slab);
    this.messages++;
  }

  hold(): void {
    this.#holders++;
  }

  letGo(): void {
    if (--this.#holders > 0) return;
    for (const slab of this.#slabs) slab.giveBack();
  }
}
