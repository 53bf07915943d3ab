/** What a rank's pipeline has to say of events it could not use; the warner bounds how often. */
import type { Warner } from './log.ts';
import type { PipelineConfig } from './pipeline.ts';

type PipelineWarnings = Pick<PipelineConfig, 'onUnusableStore' | 'onDroppedEvents' | 'onTooLarge'>;

export function pipelineWarnings(
  warner: Pick<Warner, 'warn'>,
  dpRank: number,
  configuredBlockSize: number,
): PipelineWarnings {
  return {
    onUnusableStore: ({ blockSize }) => {
      const fields = { dpRank, blockSize, configured: configuredBlockSize };
      const text = 'a store holds no block of the configured size';
      warner.warn('empty_store_blocks', fields, text);
    },
    onDroppedEvents: (reason, count) => {
      warner.warn(`dropped_${reason}`, { dpRank, reason, count }, 'engine events were dropped');
    },
    onTooLarge: (messageBytes, maxMessageBytes) => {
      const fields = { dpRank, messageBytes, maxMessageBytes };
      warner.warn('payload_too_large', fields, 'a message is larger than the plane accepts');
    },
  };
}
