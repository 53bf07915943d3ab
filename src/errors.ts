/**
 * Typed errors: what ends a start, loses a message or ends the process. Each has a stable code, and
 * a remedy where the operator can do something about it.
 */
export interface KvRelayErrorOptions {
  readonly remedy?: string;
  readonly cause?: unknown;
}

export abstract class KvRelayError extends Error {
  /** Stable, `KVR_…`: what scripts and dashboards match on. */
  abstract readonly code: string;
  readonly remedy: string | null;

  constructor(message: string, options: KvRelayErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.name = new.target.name;
    this.remedy = options.remedy ?? null;
  }
}

export interface ConfigProblem {
  /** As the user wrote it: `--block-size`, `KVRELAY_BLOCK_SIZE`, `blockSize in relay.json`. */
  readonly setting: string;
  /** What was given; leave it out where nothing was given, or where it is a secret. */
  readonly value?: string;
  /** Continues "setting value …"; without it the value itself is what is wrong. */
  readonly problem?: string;
  /** Continues "allowed: …". */
  readonly allowed: string;
  readonly remedy: string;
}

/** A setting that cannot be used. Its message is one line and complete, remedy included. */
export class ConfigError extends KvRelayError {
  readonly code = 'KVR_CONFIG';
  readonly setting: string;

  constructor(configProblem: ConfigProblem) {
    const { setting, value, problem = 'is not possible', allowed, remedy } = configProblem;
    const subject = value === undefined ? setting : `${setting} ${quoted(value)}`;
    super(oneLine(`${subject} ${problem}; allowed: ${allowed}. ${remedy}`), { remedy });
    this.setting = setting;
  }
}

/** A router batch is larger than the NATS server accepts. The batch is dropped and counted. */
export class PayloadTooLargeError extends KvRelayError {
  readonly code = 'KVR_PAYLOAD_TOO_LARGE';

  constructor(subject: string, payloadBytes: number, maxPayloadBytes: number) {
    super(`Cannot publish ${payloadBytes} bytes to "${subject}": the limit is ${maxPayloadBytes}`, {
      remedy: 'Raise max_payload on the NATS server, or lower --max-batch-blocks',
    });
  }
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is in use',
  EADDRNOTAVAIL: 'this host has no such address',
  EACCES: 'permission is missing for this port',
  ENOTFOUND: 'the host name is not known',
};

/** The address of an HTTP server cannot be bound. */
export class HttpListenError extends KvRelayError {
  readonly code = 'KVR_HTTP_LISTEN';
  /** The flag that gives it. */
  readonly setting: string;

  constructor(setting: string, address: string, cause: unknown) {
    const reason = LISTEN_REASONS[errorCode(cause)] ?? String(cause);
    super(`Cannot serve HTTP on ${address}: ${reason}`, {
      remedy: `Give another address with ${setting} HOST:PORT (port 0 = a free one), or ${setting} off`,
      cause,
    });
    this.setting = setting;
  }
}

/** kvrelay itself is wrong: nothing it would do next can be trusted, so the process ends. */
export class InvariantError extends KvRelayError {
  readonly code = 'KVR_INVARIANT';
}

/** Throws `InvariantError` where `condition` does not hold. */
export function assertInvariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** The code of any thrown value; system errors keep theirs (`EADDRINUSE`). */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'KVR_UNEXPECTED';
}

/** What an operator reads about any thrown value: one line, with the code and the remedy. */
export function errorLine(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const message = messageOf(error);
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
  const remedy = error instanceof KvRelayError ? error.remedy : null;
  return oneLine(
    `${errorCode(error)}: ${message}${reason && ` (${reason})`}${remedy === null ? '' : `. ${remedy}`}`,
  );
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Escapes what would break a line or steer a terminal: such text may come from the network. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    const escaped = JSON.stringify(character).slice(1, -1);
    return escaped === character ? `\\u${hex4(character.charCodeAt(0))}` : escaped;
  });
}

const MAX_SHOWN_CHARACTERS = 120;

function quoted(value: string): string {
  // A password may sit in an address, with any character in it; no error line repeats it.
  const masked = value.replace(/^([a-z]+:\/\/)?.*@/s, '$1***@');
  const shown =
    masked.length > MAX_SHOWN_CHARACTERS ? `${masked.slice(0, MAX_SHOWN_CHARACTERS)}…` : masked;
  return `'${shown}'`;
}

function hex4(codePoint: number): string {
  return codePoint.toString(16).padStart(4, '0');
}
