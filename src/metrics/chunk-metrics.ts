/** Why nothing is made of a chunk that a store holds, as its label. */
export const CHUNK_REFUSALS = [
  'other_model',
  'chunk_size',
  'images',
  'salt',
  'conflict',
  'no_room',
] as const;
export type ChunkRefusal = (typeof CHUNK_REFUSALS)[number];
