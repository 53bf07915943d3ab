/** MediaSets: names of media as bits of a number, and the sorted lists that such numbers stand for. */

/** As many as an entry has bits. */
const MAX_MEDIA = 16;

export class MediaSets {
  /** Events that named a medium for which there was no bit. */
  overflows = 0;
  readonly #names: string[] = [];
  readonly #lists = new Map<number, readonly string[]>();

  /** The medium's bit; 0 where there are too many. */
  bitOf(medium: string): number {
    const known = this.#names.indexOf(medium);
    if (known >= 0) return 1 << known;
    if (this.#names.length === MAX_MEDIA) {
      this.overflows++;
      return 0;
    }
    this.#names.push(medium);
    return 1 << (this.#names.length - 1);
  }

  nameOf(bit: number): string {
    return this.#names[31 - Math.clz32(bit)] as string;
  }

  listOf(media: number): readonly string[] {
    const known = this.#lists.get(media);
    if (known !== undefined) return known;
    const list = this.#names.filter((_, index) => (media & (1 << index)) !== 0).sort();
    this.#lists.set(media, list);
    return list;
  }
}
