/** Settings of the process: its HTTP address, its end and its log. */
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from '../log.ts';
import type { HttpAddress } from './addresses.ts';
import { choice, httpAddress, integer, toggle } from './kinds.ts';
import type { SettingRows } from './setting.ts';

/** A stop ends within 8 s; closing sockets and withdrawing need the rest. */
const MAX_SHUTDOWN_TIMEOUT_MS = 7000;

export interface ProcessSettings {
  /** Null: no HTTP at all. */
  readonly http: HttpAddress | null;
  readonly shutdownTimeoutMs: number;
  /** The code is compiled before the first events. */
  readonly warmUp: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

export const processSettings: SettingRows<ProcessSettings> = {
  http: {
    flag: '--http',
    environment: 'KVRELAY_HTTP',
    kind: httpAddress,
    fallback: '127.0.0.1:9464',
    help: 'Status page, metrics, health and API; port 0: a free one',
    remedy: 'Give an address of this host, or off',
  },
  shutdownTimeoutMs: {
    flag: '--shutdown-timeout-ms',
    environment: 'KVRELAY_SHUTDOWN_TIMEOUT_MS',
    kind: integer(0, MAX_SHUTDOWN_TIMEOUT_MS, 'MS'),
    fallback: '5000',
    help: 'How long a stop may take to send what is pending',
    remedy: 'Give the time the plane needs to take what is pending',
  },
  warmUp: {
    flag: '--no-warm-up',
    environment: 'KVRELAY_WARM_UP',
    kind: toggle,
    fallback: 'on',
    help: 'Do not compile the code beforehand, with a made-up stream (environment: off)',
    remedy: 'Turn it off where a start must not take a third of a second of a core',
  },
  logLevel: {
    flag: '--log-level',
    environment: 'KVRELAY_LOG_LEVEL',
    kind: choice(...LOG_LEVELS),
    fallback: 'info',
    help: 'Least severe log lines written to stderr',
    remedy: 'Give info unless you look for something',
  },
  logFormat: {
    flag: '--log-format',
    environment: 'KVRELAY_LOG_FORMAT',
    kind: choice(...LOG_FORMATS),
    fallback: 'json',
    fallbackNote: 'json; pretty on a terminal',
    help: 'Form of the log lines',
    remedy: 'Give json for a collector, pretty for reading',
  },
};
