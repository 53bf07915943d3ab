/** What one row of the settings table says; parsing, help and masking all read it from there. */
import type { Kind } from './kinds.ts';

export interface Setting<Value> {
  /** Null for what only the environment and the file give. */
  readonly flag: `--${string}` | null;
  readonly environment: string | null;
  readonly kind: Kind<Value>;
  /** The default, written as a user would; null: none, and the value is then null. */
  readonly fallback: string | null;
  /** Without a value there is no start; `with-engine`: but for `--engine none`. */
  readonly required?: true | 'with-engine';
  /** Never shown: not in errors, status or logs. */
  readonly secret?: true;
  /** Shown as the default where it is not a fixed text. */
  readonly fallbackNote?: string;
  /** Values that will exist, but do not work today. */
  readonly notYet?: readonly string[];
  /** Matters on this event plane only; said aloud where it is given and unused. */
  readonly onlyOnPlane?: 'zmq' | 'nats';
  /** Matters with this discovery only; likewise. */
  readonly onlyWithDiscovery?: 'file' | 'etcd' | 'any';
  /** `--compat strict` does not have what it sets. */
  readonly strictLacks?: string;
  /** One sentence without its full stop. */
  readonly help: string;
  /** Ends the error line: what to do about a wrong value. */
  readonly remedy: string;
}

export type SettingRows<Values> = { readonly [Key in keyof Values]: Setting<Values[Key]> };
