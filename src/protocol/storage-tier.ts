/**
 * Storage tiers as a router names them. The order is the index that packed state uses.
 *
 * Source  contracts: dynamo 1.6.1 `StorageTier`, serialised in snake case.
 */
export const STORAGE_TIERS = ['device', 'host_pinned', 'disk', 'external'] as const;

export type StorageTier = (typeof STORAGE_TIERS)[number];
