/**
 * Settings that are documented but not built yet. Whoever gives one expects something to happen, so
 * the start ends; only the values that ask for what already happens pass.
 */
import { ConfigError } from '../errors.ts';
import { isOffText, listed } from './kinds.ts';

export interface NotYet {
  readonly flag: `--${string}` | null;
  readonly environment: string | null;
  /** Values that name today's behaviour. */
  readonly accepted: readonly string[];
  readonly remedy: string;
}

export const notYetSettings: readonly NotYet[] = [
  notYet(null, 'Set it to tcp', { environment: 'DYN_RESPONSE_PLANE', accepted: ['tcp'] }),
  notYet('--clear-on-stop', 'Leave it out', { accepted: ['off'] }),
];

function notYet(
  flag: NotYet['flag'],
  remedy: string,
  options: { environment?: string | null; accepted?: readonly string[] } = {},
): NotYet {
  const { environment = flag === null ? null : environmentOf(flag), accepted = [] } = options;
  return { flag, environment, accepted, remedy };
}

function environmentOf(flag: string): string {
  return `KVRELAY_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`;
}

/** Throws unless `value` asks for what already happens. */
export function refuseNotYet(
  { accepted, remedy }: NotYet,
  setting: string,
  value: string | undefined,
): void {
  if (value !== undefined) {
    const isOff = accepted.includes('off') && isOffText(value);
    if (isOff || accepted.includes(value)) return;
  }
  throw new ConfigError({
    setting,
    ...(value !== undefined && { value }),
    problem: 'is not supported yet',
    allowed: accepted.length > 0 ? listed(accepted) : 'to leave it out',
    remedy,
  });
}
