/**
 * `kvrelay doctor`: checks a configuration against what is there, each check with its remedy.
 *
 * stdout   a line a check in a fixed order, text or JSON; no secrets, no token ids.
 * Bounds   --seconds for all of it; a signal ends it with what is known by then.
 * Touches  nothing: sockets are opened and closed again, the registry is only read.
 */
import { rankEndpoint } from '../../config/addresses.ts';
import { oneLine } from '../../errors.ts';
import { createLogger } from '../../log.ts';
import { diverges } from '../../protocol/compat.ts';
import { EXIT_FAILED, EXIT_OK, logNodeWarnings, type StopSignals } from '../lifecycle.ts';
import { ResultPrinter } from '../result-printer.ts';
import { type Check, inOrder, skipped } from './check.ts';
import type { ProbeContext } from './context.ts';
import { discoveryChecks } from './discovery-checks.ts';
import { engineChecks, skippedEngineChecks } from './engine-checks.ts';
import { type EngineSighting, watchEngine } from './engine-probe.ts';
import { type DoctorFlags, loadDoctorFlags } from './flags.ts';
import {
  clockCheck,
  engineMetricsCheck,
  httpCheck,
  nodeCheck,
  settingsCheck,
} from './host-checks.ts';
import { planeChecks } from './plane-checks.ts';
import { probeReplay } from './replay-probe.ts';
import { findRunningRelay } from './running-relay.ts';
import { storeChecks } from './store-checks.ts';
import { checksWithoutRegistry } from './without-registry.ts';

/** Most engine sockets that are listened to. */
const MAX_SOCKETS = 64;

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function doctor(argv: readonly string[], signals: StopSignals): Promise<number> {
  const flags = loadDoctorFlags(argv, process.env);
  const { config, seconds } = flags;
  logNodeWarnings(createLogger({ level: config.logLevel, format: config.logFormat }));
  const ended = new AbortController();
  const results = new ResultPrinter(() => ended.abort());
  void signals.first.then(() => ended.abort());
  const timer = setTimeout(() => ended.abort(), seconds * 1000);
  const checks = inOrder(await allChecks(flags, ended.signal));
  clearTimeout(timer);
  for (const check of checks) await results.write(flags.json ? jsonOf(check) : textOf(check));
  await results.finish();
  return checks.some(({ state }) => state === 'fail') ? EXIT_FAILED : EXIT_OK;
}

async function allChecks(flags: DoctorFlags, ended: AbortSignal): Promise<Check[]> {
  const { config, isBlockSizeGiven, isWorkerIdGiven } = flags;
  const relay = await findRunningRelay(config.http, ended);
  const context: ProbeContext = { config, isBlockSizeGiven, isWorkerIdGiven, ended, relay };
  const [engine, ...rest] = await Promise.all([
    engineAndClock(context),
    replay(context),
    engineMetricsCheck(context),
    httpCheck(context),
    storeChecks(context),
    planeChecks(context),
    config.discovery === 'none' ? checksWithoutRegistry(context) : discoveryChecks(context),
  ]);
  return [settingsCheck(context), nodeCheck(process.versions.node), ...engine, ...rest.flat()];
}

/** The first rank of each socket that is looked at. */
function socketRanks({ config }: ProbeContext): number[] {
  const sockets = config.engineSockets === 'shared' ? 1 : Math.min(config.dpSize, MAX_SOCKETS);
  return Array.from({ length: sockets }, (_, offset) => config.dpRank + offset);
}

async function engineAndClock(context: ProbeContext): Promise<Check[]> {
  const { config, ended, relay } = context;
  if (config.engine === 'none') {
    const reason = '--engine none has none';
    return [clockCheck(Date.now(), null), ...skippedEngineChecks(reason)];
  }
  if (config.engineBind && relay !== null) {
    const reason = 'the relay that runs holds the socket: ask kvrelay query status';
    return [clockCheck(Date.now(), null), ...skippedEngineChecks(reason)];
  }
  const ranks = socketRanks(context);
  const sightings = await Promise.all(
    ranks.map((rank) =>
      watchEngine(rankEndpoint(config.engineEndpoint, rank - config.dpRank), config, ended),
    ),
  );
  const checks = sightings.flatMap((sighting, index) => {
    const rank = config.dpRank + index;
    return withRank(engineChecks(sighting, expectationOf(rank, context)), rank, config.dpSize);
  });
  return [clockCheck(Date.now(), leastSkewMs(sightings)), ...checks];
}

function expectationOf(
  rank: number,
  { config, isBlockSizeGiven }: ProbeContext,
): Parameters<typeof engineChecks>[1] {
  const { engineSockets, dpRank, dpSize, compat, engine, engineTopic, blockSize } = config;
  const all = Array.from({ length: dpSize }, (_, offset) => dpRank + offset);
  const dpRanks = engineSockets === 'shared' ? all : [rank];
  const takesAnyRank = !diverges(compat, 'rank-routing');
  return { topic: engineTopic, dpRanks, blockSize, isBlockSizeGiven, engine, takesAnyRank };
}

function leastSkewMs(sightings: readonly EngineSighting[]): number | null {
  const known = sightings.map(({ skewMs }) => skewMs).filter((skewMs) => skewMs !== null);
  known.sort((a, b) => Math.abs(a) - Math.abs(b));
  return known[0] ?? null;
}

async function replay(context: ProbeContext): Promise<Check[]> {
  const { config, ended } = context;
  const { replayEndpoint, onEngineGap, dpRank, dpSize } = config;
  if (replayEndpoint === null || onEngineGap === 'count' || config.engine === 'none') {
    const reason =
      replayEndpoint === null || config.engine === 'none'
        ? 'no --replay-endpoint: lost batches stay lost'
        : '--on-engine-gap count asks for none';
    return [skipped('replay_answer', reason), skipped('replay_depth', reason)];
  }
  const checks = socketRanks(context).map(async (rank) =>
    withRank(
      await probeReplay(rankEndpoint(replayEndpoint, rank - dpRank), config, ended),
      rank,
      dpSize,
    ),
  );
  return (await Promise.all(checks)).flat();
}

function withRank(checks: readonly Check[], rank: number, dpSize: number): Check[] {
  return checks.map((check) => (dpSize === 1 ? check : { ...check, rank }));
}

function jsonOf({ name, state, rank, text, remedy }: Check): string {
  return `${oneLine(JSON.stringify({ name, state, rank, text, remedy }))}\n`;
}

function textOf({ name, state, rank, text, remedy }: Check): string {
  const subject = rank === null ? '' : `rank ${rank}: `;
  const what = remedy === null ? text : `${text}. ${remedy}`;
  return `${oneLine(`${state.padEnd(7)}  ${name.padEnd(17)}  ${subject}${what}`)}\n`;
}
