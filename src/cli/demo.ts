/**
 * `kvrelay demo`: the worker of `run` on a recorded engine stream, its figures on stdout.
 *
 * Engine   a child process that plays the recording on a free port, or on `--engine-endpoint`. One
 *          that dies is started again a second later, for ever, as a supervisor would do it; its
 *          numbers go on behind the last one seen, after a clear.
 * HTTP     the default port, or a free one where that is taken and the user named none.
 * stdout   on a terminal one live line, else a line every ten seconds; at the end a summary.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fromFile } from '../config/config-file.ts';
import { loadConfig } from '../config/load-config.ts';
import { maskedSettings } from '../config/masked-settings.ts';
import { fromArguments, fromEnvironment, type GivenSettings } from '../config/sources.ts';
import type { WorkerConfig } from '../config/worker-config.ts';
import { ConfigError, errorCode, HttpListenError } from '../errors.ts';
import { createLogger, createWarner, type Logger } from '../log.ts';
import type { StatusSnapshot } from '../status/status-source.ts';
import { createWorker, type Worker } from '../worker.ts';
import { EngineChild } from './demo-engine.ts';
import {
  logNodeWarnings,
  type Runnable,
  runUntilSignal,
  type StopSignals,
  writeOut,
} from './lifecycle.ts';
import {
  introduction,
  LiveDisplay,
  type LiveFigures,
  liveFigures,
  liveLine,
  plainLine,
  RateMeter,
  summary,
} from './live-line.ts';
import { RecordingError, type RecordingHeader, RecordingReader } from './recording.ts';

const RECORDING = fileURLToPath(new URL('../../assets/demo.kvrec', import.meta.url));
const FREE_PORT = 'tcp://127.0.0.1:0';

const LIVE_INTERVAL_MS = 250;
const PLAIN_INTERVAL_MS = 10_000;
/** The first figures come sooner. */
const FIRST_PLAIN_MS = 1000;
const DEFAULT_COLUMNS = 80;

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function demo(argv: readonly string[], signals: StopSignals): Promise<number> {
  const header = readHeader();
  const { config, named } = loadSettings(argv, header);
  const { stdout } = process;
  // Whoever reads the results may leave; the relay goes on until it is stopped.
  stdout.on('error', () => undefined);
  const display = stdout.isTTY ? new LiveDisplay(stdout) : null;
  const logger = createDemoLogger(config, display);
  logNodeWarnings(logger);
  logger.debug({ settings: maskedSettings(config) }, 'settings');
  for (const warning of config.warnings) logger.warn(warning);
  const relay = new DemoRelay(config, named, logger);
  let stopShowing: () => void = () => undefined;
  const exitCode = await runUntilSignal({
    worker: relay,
    logger,
    signals,
    onStarted: () => {
      logger.info({ http: relay.httpUrl }, 'kvrelay is running');
      stdout.write(introduction(header.engine, relay.status(), relay.httpUrl));
      stopShowing = show(relay, display);
      void signals.first.then(stopShowing);
    },
  });
  stopShowing();
  const closing = relay.finalFigures === null ? '' : summary(relay.finalFigures);
  await writeOut(closing);
  return exitCode;
}

function readHeader(): RecordingHeader {
  try {
    return new RecordingReader(readFileSync(RECORDING)).header;
  } catch (cause) {
    throw new RecordingError(`Cannot play ${RECORDING}`, { cause, remedy: 'Install it again' });
  }
}

/** The settings, and those of them that the user has named. */
function loadSettings(
  argv: readonly string[],
  header: RecordingHeader,
): { config: WorkerConfig; named: GivenSettings } {
  const { env, stderr } = process;
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  const config = loadConfig({
    argv,
    env,
    readFile,
    random: randomBytes,
    defaults: {
      blockSize: String(header.block_size),
      planeEndpoint: FREE_PORT,
      ...(stderr.isTTY && { logFormat: 'pretty', logLevel: 'warn' }),
    },
  });
  const flags = fromArguments(argv);
  const configFile = flags.get('config');
  const file = configFile === undefined ? [] : fromFile(configFile, readFile);
  const named: GivenSettings = new Map([...file, ...fromEnvironment(env), ...flags]);
  if (config.dpSize === 1) return { config, named };
  throw new ConfigError({
    setting: named.get('dpSize')?.name ?? 'dpSize',
    value: String(config.dpSize),
    allowed: '1 in the demo',
    remedy: 'Leave it out: the recording is of one rank',
  });
}

/** On a terminal the log lines go above the live line. */
function createDemoLogger(config: WorkerConfig, display: LiveDisplay | null): Logger {
  const options = { level: config.logLevel, format: config.logFormat };
  if (display === null) return createLogger(options);
  // What ends the process outside of the logger must not be written onto the line either.
  process.on('exit', () => display.clear());
  process.on('uncaughtExceptionMonitor', () => display.clear());
  const { stderr } = process;
  const write = (line: string): void => display.above(() => void stderr.write(line));
  return createLogger(stderr.isTTY ? { ...options, out: { write } } : options);
}

/** DemoRelay: the recorded engine and the worker beside it, started and stopped as one. */
class DemoRelay implements Runnable {
  readonly #config: WorkerConfig;
  readonly #isHttpNamed: boolean;
  readonly #logger: Logger;
  readonly #engine: EngineChild;
  #worker: Worker | null = null;
  #hasStarted = false;
  #isStopping = false;
  /** What was relayed, once that has ended. */
  finalFigures: LiveFigures | null = null;

  constructor(config: WorkerConfig, named: GivenSettings, logger: Logger) {
    this.#config = config;
    this.#isHttpNamed = named.has('http');
    this.#logger = logger;
    const hasOwnPort = !config.engineBind && !named.has('engineEndpoint');
    this.#engine = new EngineChild({
      recording: RECORDING,
      endpoint: hasOwnPort ? FREE_PORT : config.engineEndpoint,
      direction: config.engineBind ? 'connect' : 'bind',
      dpRank: config.dpRank,
      nextSequence: () => nextSequence(this.status()),
      logger,
      warner: createWarner(logger),
    });
  }

  get httpUrl(): string | null {
    return this.#worker?.httpUrl ?? null;
  }

  /** Null until there is a worker. */
  status(): StatusSnapshot | null {
    return this.#worker?.status() ?? null;
  }

  async start(): Promise<void> {
    const engineEndpoint = await this.#engine.start();
    const config = Object.freeze({ ...this.#config, engineEndpoint });
    try {
      await this.#startWorker(config);
    } catch (error) {
      const { http } = config;
      if (this.#isHttpNamed || http === null || !isPortTaken(error)) throw error;
      this.#logger.warn({ port: http.port }, 'the HTTP port is taken: a free one is used');
      await this.#worker?.stop();
      await this.#startWorker(Object.freeze({ ...config, http: { ...http, port: 0 } }));
    }
    this.#hasStarted = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const before = this.status();
    await Promise.all([this.#worker?.stop(), this.#engine.stop()]);
    const after = this.status();
    if (!this.#hasStarted || before === null || after === null) return;
    // The counters still grow during the stop, which lets go of the blocks at its end.
    this.finalFigures = { ...liveFigures(after), blocks: liveFigures(before).blocks };
  }

  async #startWorker(config: WorkerConfig): Promise<void> {
    if (this.#isStopping) return;
    this.#worker = createWorker(config, { logger: this.#logger });
    await this.#worker.start();
  }
}

function nextSequence(status: StatusSnapshot | null): bigint {
  const last = status?.ranks[0]?.engine.last_seq;
  return last === undefined || last === null ? 0n : BigInt(last) + 1n;
}

/** EACCES: Windows keeps some ports to itself. */
function isPortTaken(error: unknown): boolean {
  if (!(error instanceof HttpListenError) || error.setting !== '--http') return false;
  return ['EADDRINUSE', 'EACCES'].includes(errorCode(error.cause));
}

/** Shows the figures until the returned function is called. */
function show(relay: DemoRelay, display: LiveDisplay | null): () => void {
  const { stdout } = process;
  const rate = new RateMeter();
  const update = (): void => {
    const status = relay.status();
    if (status === null) return;
    const figures = liveFigures(status);
    const eventsPerSecond = rate.observe(figures.eventsIn, performance.now());
    if (display === null) stdout.write(`${plainLine(figures, eventsPerSecond)}\n`);
    // A terminal without a size says 0.
    else display.draw(liveLine(figures, eventsPerSecond, stdout.columns || DEFAULT_COLUMNS));
  };
  rate.observe(0, performance.now());
  const timer = setInterval(update, display === null ? PLAIN_INTERVAL_MS : LIVE_INTERVAL_MS);
  const first = setTimeout(update, display === null ? FIRST_PLAIN_MS : LIVE_INTERVAL_MS);
  if (display !== null) stdout.on('resize', update);
  return () => {
    clearInterval(timer);
    clearTimeout(first);
    stdout.off('resize', update);
    display?.clear();
  };
}
