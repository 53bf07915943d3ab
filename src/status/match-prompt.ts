/**
 * The body of `/api/match`.
 *
 * tokens      list of u32, at most MAX_TOKENS
 * lora_name   text, optional
 * cache_salt  text, optional
 * mm          images of each block from the first on, optional: lists of hashes as decimal text
 * is_eagle    whether blocks share a token with the next, optional
 */
import type { MatchPrompt } from './index-source.ts';

const MAX_TOKENS = 262_144;
const MAX_TEXT = 1024;
const MAX_IMAGES_A_BLOCK = 64;
const U64_MAX = 2n ** 64n - 1n;

/** The prompt, or what is wrong with it; never with what it holds. */
export function parsePrompt(body: string): MatchPrompt | string {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return 'The body is no JSON';
  }
  if (typeof value !== 'object' || value === null) return 'The body is no JSON object';
  const { tokens, lora_name, cache_salt, mm = [], is_eagle = false } = value as MatchBody;
  if (!isTokens(tokens)) return `tokens has to be a list of at most ${MAX_TOKENS} integers (u32)`;
  const texts = [lora_name ?? null, cache_salt ?? null];
  if (!texts.every(isTextOrNull)) {
    return `lora_name and cache_salt take texts of at most ${MAX_TEXT} characters`;
  }
  const mmHashes = mmHashesOf(mm, tokens.length);
  if (mmHashes === null) {
    return `mm takes a list a block of at most ${MAX_IMAGES_A_BLOCK} hashes (u64, as decimal text)`;
  }
  if (typeof is_eagle !== 'boolean') return 'is_eagle takes true or false';
  const [loraName = null, cacheSalt = null] = texts;
  return { tokens, loraName, cacheSalt, mmHashes, isEagle: is_eagle };
}

interface MatchBody {
  readonly tokens?: unknown;
  readonly lora_name?: unknown;
  readonly cache_salt?: unknown;
  readonly mm?: unknown;
  readonly is_eagle?: unknown;
}

function isTokens(value: unknown): value is number[] {
  const isToken = (token: unknown): boolean =>
    typeof token === 'number' && Number.isInteger(token) && token >= 0 && token < 2 ** 32;
  return Array.isArray(value) && value.length <= MAX_TOKENS && value.every(isToken);
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && value.length <= MAX_TEXT);
}

/** There are fewer blocks than tokens. */
function mmHashesOf(value: unknown, maxBlocks: number): bigint[][] | null {
  if (!Array.isArray(value) || value.length > maxBlocks) return null;
  const lists = value.map(hashesOf);
  return lists.includes(null) ? null : (lists as bigint[][]);
}

function hashesOf(value: unknown): bigint[] | null {
  if (value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_IMAGES_A_BLOCK) return null;
  const isHash = (text: unknown): text is string =>
    typeof text === 'string' && /^\d{1,20}$/.test(text) && BigInt(text) <= U64_MAX;
  return value.every(isHash) ? value.map(BigInt) : null;
}
