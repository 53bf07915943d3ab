/**
 * Pages of the objects held, for listings and snapshots.
 *
 * Cursor   where the next page begins. Objects that are held all the while come exactly once; one that
 *          comes, goes or changes meanwhile may be shown or not, and its event tells.
 * Bounds   rows, characters of their texts, and entries looked at a page: a page may be empty and not the last.
 */
import type { ObjectEvent } from '../../protocol/object-event.ts';
import type { HeldScope } from './object-scopes.ts';
import type { ObjectState } from './object-state.ts';
import { wireAttributes } from './object-stream.ts';

export interface ObjectFilter {
  readonly source: string | null;
  readonly backendId: string | null;
  readonly tenantId: string | null;
  /** UTF-8 that keys begin with. */
  readonly prefix: Uint8Array | null;
}

/** As in events: known attributes alone. */
export type ObjectRow = Omit<
  ObjectEvent,
  'event_id' | 'type' | 'cause' | 'medium' | 'object_count'
>;

export interface ObjectPage {
  readonly rows: readonly ObjectRow[];
  /** Null behind the last page. */
  readonly next: ObjectCursor | null;
}

export interface ObjectCursor {
  readonly scopeId: number;
  readonly entry: number;
}

const MAX_PAGE_ROWS = 500;
/** A character is up to six bytes of JSON, and a message up to a MiB. */
const MAX_PAGE_CHARACTERS = 128 << 10;
const MAX_PAGE_ENTRIES = 50_000;

export const FIRST_PAGE: ObjectCursor = { scopeId: 0, entry: 0 };

export function objectPage(
  state: ObjectState,
  from: ObjectCursor,
  filter: ObjectFilter,
): ObjectPage {
  const rows: ObjectRow[] = [];
  let looked = 0;
  let characters = 0;
  for (const scope of state.scopes()) {
    if (scope.id < from.scopeId || !isAsked(scope, filter)) continue;
    let entry = scope.id === from.scopeId ? from.entry : 0;
    for (; entry < scope.table.entryEnd; entry++) {
      const isFull = rows.length === MAX_PAGE_ROWS || characters > MAX_PAGE_CHARACTERS;
      if (isFull || looked === MAX_PAGE_ENTRIES) {
        return { rows, next: { scopeId: scope.id, entry } };
      }
      looked++;
      if (filter.prefix !== null && !startsWith(scope.table.key(entry), filter.prefix)) continue;
      const row = rowOf(state, scope, entry);
      if (row === null) continue;
      rows.push(row);
      characters += charactersOf(row);
    }
  }
  return { rows, next: null };
}

function rowOf(state: ObjectState, scope: HeldScope, entry: number): ObjectRow | null {
  const object = state.objectAt(scope, entry);
  if (object === null) return null;
  return {
    source: scope.source,
    backend_id: scope.backendId,
    tenant_id: scope.tenantId,
    object_key: Buffer.from(object.key.buffer, object.key.byteOffset, object.key.length).toString(),
    media: object.media,
    ...wireAttributes(object.attributes),
  };
}

function charactersOf(row: ObjectRow): number {
  let characters = 0;
  for (const value of Object.values(row)) {
    if (typeof value === 'string') characters += value.length;
  }
  return characters;
}

function isAsked(scope: HeldScope, { source, backendId, tenantId }: ObjectFilter): boolean {
  return (
    (source === null || scope.source === source) &&
    (backendId === null || scope.backendId === backendId) &&
    (tenantId === null || scope.tenantId === tenantId)
  );
}

function startsWith(key: Uint8Array, prefix: Uint8Array): boolean {
  return prefix.every((byte, index) => key[index] === byte);
}
