/**
 * `kvrelay play`: a recording as an engine.
 *
 * stdout   the addresses as soon as they are taken, the counts at the end: one JSON object a line.
 * stderr   states: ready, waiting, playing, again, restarted, torn, ended.
 */
import { formatZmqAddress, MAX_PORT, type ZmqAddress } from '../config/addresses.ts';
import { ConfigError } from '../errors.ts';
import { createLogger, type Logger } from '../log.ts';
import {
  EXIT_FAILED,
  EXIT_OK,
  logFailure,
  MAX_TIMER_MS,
  type StopSignals,
  writeOut,
} from './lifecycle.ts';
import { loadPlayFlags } from './play-flags.ts';
import { Player } from './play-player.ts';
import { type MessageFile, openMessageFile } from './recording-source.ts';

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function play(argv: readonly string[], signals: StopSignals): Promise<number> {
  const flags = loadPlayFlags(argv, process.env);
  checkPort('--endpoint', flags.endpoint, !flags.connect);
  if (flags.replayEndpoint !== null) checkPort('--replay-endpoint', flags.replayEndpoint, true);
  const logger = createLogger({ level: flags.logLevel, format: flags.logFormat });
  const file = openMessageFile(flags.argument);
  // Whoever reads the addresses may leave; the engine goes on.
  process.stdout.on('error', () => undefined);
  if (signals.received) return EXIT_OK;
  const player = createPlayer(flags, file, logger);
  const keepAlive = setInterval(() => undefined, MAX_TIMER_MS);
  try {
    const { endpoint, replayEndpoint } = await player.open();
    const addresses = { endpoint, replay_endpoint: replayEndpoint };
    await writeOut(`${JSON.stringify(addresses)}\n`);
    logger.info({ state: 'ready', ...addresses, header: file.header }, 'the engine listens');
    await Promise.race([player.play(), signals.first]);
    const counts = { batches: player.batches, dropped: player.dropped };
    logger.info({ state: 'ended', ...counts }, 'the play has ended');
    if (flags.hold) await signals.first;
    await player.stop();
    await writeOut(`${JSON.stringify(counts)}\n`);
    return EXIT_OK;
  } catch (error) {
    logFailure(logger, error);
    await player.stop().catch(() => undefined);
    return EXIT_FAILED;
  } finally {
    clearInterval(keepAlive);
  }
}

type Flags = ReturnType<typeof loadPlayFlags>;

function createPlayer(flags: Flags, file: MessageFile, logger: Logger): Player {
  const { endpoint, connect, replayEndpoint, bufferSteps, replayForm } = flags;
  const { rate, drop, seed, delayMs, restartAt } = flags;
  const onTorn = (reason: string): void =>
    logger.warn({ state: 'torn', reason }, 'the file is torn: the rest of it is played');
  return new Player({
    engine: {
      endpoint: formatZmqAddress(endpoint),
      direction: connect ? 'connect' : 'bind',
      replayEndpoint: replayEndpoint && formatZmqAddress(replayEndpoint),
      bufferSteps,
      replayForm,
      firstSequence: 0n,
    },
    messages: () => file.messages({ onTorn }),
    rate,
    loops: flags.loop,
    waits: flags.wait,
    drop,
    seed,
    delayMs,
    restartAt,
    onEvent: ({ kind, ...fields }) => logger.info({ state: kind, ...fields }, 'play'),
  });
}

/** zeromq takes port 70000 without a word, and connects to port 0 for ever. */
function checkPort(setting: string, address: ZmqAddress, isBound: boolean): void {
  if (address.transport === 'ipc') return;
  const min = isBound ? 0 : 1;
  if (address.port >= min && address.port <= MAX_PORT) return;
  throw new ConfigError({
    setting,
    value: formatZmqAddress(address),
    problem: 'has a port that is none',
    allowed: `ports ${min} to ${MAX_PORT}`,
    remedy: 'Correct the port',
  });
}
