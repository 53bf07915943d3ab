import { readFileSync } from 'node:fs';

const VECTORS = new URL('../vectors/', import.meta.url);

/** One JSON value a line. */
export function readJsonLines<T>(path: string): T[] {
  return readFileSync(new URL(path, VECTORS), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

export function readVectorFile(path: string): Buffer {
  return readFileSync(new URL(path, VECTORS));
}
