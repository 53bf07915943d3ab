/**
 * The logger, and the budget that keeps one repeating cause from flooding it.
 *
 * Out      one line an entry on stderr, written before the call returns: the last line before an
 *          exit is always there. JSON, or `HH:MM:SS level message key=value` for a terminal.
 * Secrets  nobody passes any; keys that could hold one, or token ids, are masked all the same.
 */
import { destination, type Logger, pino, stdTimeFunctions } from 'pino';
import { oneLine } from './errors.ts';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'pretty'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Takes whole lines, each with its line feed; stderr where absent. */
  readonly out?: { write(line: string): void };
}

const MASKED_KEYS = [
  'password',
  'pass',
  'token',
  'tokens',
  'tokenIds',
  'token_ids',
  'creds',
  'credentials',
  'nkey',
  'seed',
  'secret',
  'authorization',
];

export function createLogger({ level, format, out }: LogOptions): Logger {
  const lines = out ?? stderrLines();
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      redact: { paths: MASKED_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '***' },
      formatters: {
        level: (label) => ({ level: label }),
        log: withTextForBigints,
      },
    },
    format === 'json' ? lines : { write: (json: string) => lines.write(prettyLine(json)) },
  );
}

function stderrLines(): ReturnType<typeof destination> {
  const lines = destination({ dest: 2, sync: true });
  // A full disk or a closed pipe behind stderr costs log lines, never the stream.
  lines.on('error', () => undefined);
  return lines;
}

/**
 * pino writes a bigint as a bare number, which most readers then round. It does not ask for the
 * fields of `child()`: give those a u64 as text.
 */
function withTextForBigints(fields: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(fields);
  if (!entries.some(([, value]) => typeof value === 'bigint')) return fields;
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'bigint' ? value.toString() : value]),
  );
}

function prettyLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = new Date(String(time)).toTimeString().slice(0, 8);
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${prettyValue(value)}`);
  const message = typeof msg === 'string' ? msg : '';
  return `${oneLine(`${clock} ${String(level).padEnd(5)} ${message}${pairs.join('')}`)}\n`;
}

function prettyValue(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"'=]+$/.test(value)) return value;
  return JSON.stringify(value) ?? 'undefined';
}

export interface WarningBudgetOptions {
  /** Lines a cause may write before it is slowed down. */
  readonly freeLines?: number;
  /** Least time between its later lines. */
  readonly intervalMs?: number;
  /** Causes told apart; all further ones share one budget. */
  readonly maxCauses?: number;
  readonly now?: () => number;
}

interface CauseState {
  lines: number;
  lastLineMs: number;
  heldBack: number;
}

/** Shared by the causes beyond `maxCauses`, so that the map stays bounded whatever causes come. */
const FURTHER_CAUSES = 'further causes';

/** WarningBudget: decides which warnings become lines, and counts those that do not. */
export class WarningBudget {
  readonly #freeLines: number;
  readonly #intervalMs: number;
  readonly #maxCauses: number;
  readonly #now: () => number;
  readonly #causes = new Map<string, CauseState>();

  constructor(options: WarningBudgetOptions = {}) {
    this.#freeLines = options.freeLines ?? 3;
    this.#intervalMs = options.intervalMs ?? 60_000;
    this.#maxCauses = options.maxCauses ?? 256;
    this.#now = options.now ?? (() => performance.now());
  }

  /** How many were held back since the cause's last line, where a line is due; else null. */
  admit(cause: string): number | null {
    const state = this.#stateOf(cause);
    const nowMs = this.#now();
    if (state.lines >= this.#freeLines && nowMs - state.lastLineMs < this.#intervalMs) {
      state.heldBack++;
      return null;
    }
    const { heldBack } = state;
    state.lines++;
    state.lastLineMs = nowMs;
    state.heldBack = 0;
    return heldBack;
  }

  /** What no line has told yet, a cause; told now, so it starts again at 0. */
  takeHeldBack(): Map<string, number> {
    const untold = new Map<string, number>();
    for (const [cause, state] of this.#causes) {
      if (state.heldBack > 0) untold.set(cause, state.heldBack);
      state.heldBack = 0;
    }
    return untold;
  }

  #stateOf(cause: string): CauseState {
    const known = this.#causes.get(cause);
    if (known !== undefined) return known;
    if (this.#causes.size >= this.#maxCauses && cause !== FURTHER_CAUSES) {
      return this.#stateOf(FURTHER_CAUSES);
    }
    const fresh: CauseState = { lines: 0, lastLineMs: 0, heldBack: 0 };
    this.#causes.set(cause, fresh);
    return fresh;
  }
}

export interface Warner {
  /** Logs at most 3 lines a cause, then one a minute with `heldBack`, the number left out. */
  warn(cause: string, fields: Record<string, unknown>, message: string): void;
  /** At the end: one line a cause for what was held back and would otherwise never be told. */
  flush(): void;
}

export function createWarner(
  logger: Pick<Logger, 'warn'>,
  budget: WarningBudget = new WarningBudget(),
): Warner {
  return {
    warn(cause, fields, message): void {
      const heldBack = budget.admit(cause);
      if (heldBack === null) return;
      logger.warn({ cause, ...fields, ...(heldBack > 0 && { heldBack }) }, message);
    },
    flush(): void {
      for (const [cause, heldBack] of budget.takeHeldBack()) {
        logger.warn({ cause, heldBack }, 'warnings held back');
      }
    },
  };
}
