/** Keys of 50 bytes, as a store of KV blocks has them. */
export function objectKey(number) {
  return `Qwen/Qwen3-8B@${number % 8}@${String(number * 2654435761).padStart(34, '0')}`;
}
