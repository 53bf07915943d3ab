/** Values of a query string that several routes take. */

const EVENT_ID = /^\d{1,20}$/;

/** Null where it is not given, undefined where it is no event id; ids beyond 2^53 were never given out. */
export function eventIdOf(text: string | null): number | null | undefined {
  if (text === null) return null;
  return EVENT_ID.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : undefined;
}
