/**
 * What the extra keys of a store say: its cache namespace and the images of its blocks.
 *
 * namespace  the first block's first text `dynamo-cache-salt:NAME`; one text equal to the adapter name
 *            is the adapter, and plain texts are never a salt
 * image      16 hex digits (the hash) and 48 zeros, alone or with an offset; other digests are none
 * Source     ai-dynamo/dynamo 1.6.1, extra_keys fall-backs of the KV publisher.
 */
import type { MmInfo } from '../protocol/multimodal.ts';
import type { ExtraKey } from '../protocol/native-batch.ts';

const SALT_PREFIX = 'dynamo-cache-salt:';
const IMAGE_KEY = /^[0-9a-f]{16}0{48}$/i;

export function saltOfExtraKeys(
  extraKeys: readonly (readonly ExtraKey[])[] | null,
  loraName: string | null,
): string | null {
  let loraSeen = false;
  for (const { text, hasOffset } of extraKeys?.[0] ?? []) {
    if (hasOffset) continue;
    if (!loraSeen && text === loraName) loraSeen = true;
    else if (text.startsWith(SALT_PREFIX) && text.length > SALT_PREFIX.length) {
      return text.slice(SALT_PREFIX.length);
    }
  }
  return null;
}

/** Images a block, null where no block has any. */
export function mmInfosOfExtraKeys(
  extraKeys: readonly (readonly ExtraKey[])[] | null,
): (MmInfo | null)[] | null {
  if (extraKeys === null) return null;
  const mmInfos = extraKeys.map((keys) => {
    const hashes = keys
      .filter((key) => IMAGE_KEY.test(key.text))
      .map((key) => BigInt(`0x${key.text.slice(0, 16)}`));
    if (hashes.length === 0) return null;
    return {
      mmHashes: BigUint64Array.from(hashes),
      offsets: hashes.map(() => new BigUint64Array(0)),
    };
  });
  return mmInfos.some((info) => info !== null) ? mmInfos : null;
}

/** Whether a text has no meaning here: no salt, no image, not the adapter's name. */
export function hasUnknownExtraKey(
  extraKeys: readonly (readonly ExtraKey[])[] | null,
  loraName: string | null,
): boolean {
  return (extraKeys ?? []).some((keys) =>
    keys.some(
      ({ text }) => text !== loraName && !text.startsWith(SALT_PREFIX) && !IMAGE_KEY.test(text),
    ),
  );
}
