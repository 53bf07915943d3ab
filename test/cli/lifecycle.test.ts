import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { logFailure, type Runnable, runUntilSignal, StopSignals } from '../../src/cli/lifecycle.ts';
import { ConfigError, InvariantError } from '../../src/errors.ts';
import { createLogger } from '../../src/log.ts';

const never = new Promise<void>(() => undefined);

function setUp(worker: Partial<Runnable>) {
  const lines: Record<string, unknown>[] = [];
  const out = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ level: 'info', format: 'json', out });
  const source = new EventEmitter();
  const onSecond = vi.fn<() => void>();
  const signals = new StopSignals(source, onSecond);
  const calls: string[] = [];
  const traced: Runnable = {
    start: async () => {
      calls.push('start');
      await worker.start?.();
    },
    stop: async () => {
      calls.push('stop');
      await worker.stop?.();
    },
  };
  const run = (): Promise<number> =>
    runUntilSignal({
      worker: traced,
      logger,
      signals,
      onStarted: () => calls.push('started'),
      hardStopMs: 20,
    });
  return { calls, lines, logger, onSecond, run, signals, source };
}

test('the first signal stops a running worker and the exit is clean', async () => {
  const { calls, lines, onSecond, run, source } = setUp({});
  const exitCode = run();
  await delay(5);
  expect(calls).toEqual(['start', 'started']);
  source.emit('SIGINT', 'SIGINT');
  expect(await exitCode).toBe(0);
  expect(calls).toEqual(['start', 'started', 'stop']);
  expect(lines).toMatchObject([{ signal: 'SIGINT', msg: 'stopping' }, { msg: 'stopped' }]);
  expect(onSecond).not.toHaveBeenCalled();
});

test('a signal during the start stops cleanly', async () => {
  const { calls, run, source } = setUp({ start: () => never });
  const exitCode = run();
  source.emit('SIGTERM', 'SIGTERM');
  expect(await exitCode).toBe(0);
  expect(calls).toEqual(['start', 'stop']);
});

test('a signal before the start leaves the worker alone', async () => {
  const { calls, run, source } = setUp({});
  source.emit('SIGTERM', 'SIGTERM');
  expect(await run()).toBe(0);
  expect(calls).toEqual([]);
});

test('an echo of the first signal is no second one; a later signal forces the exit', async () => {
  const { onSecond, run, signals, source } = setUp({ stop: () => never });
  const exitCode = run();
  source.emit('SIGTERM', 'SIGTERM');
  source.emit('SIGTERM', 'SIGTERM');
  expect(onSecond).not.toHaveBeenCalled();
  await delay(300);
  source.emit('SIGINT', 'SIGINT');
  expect(onSecond).toHaveBeenCalledTimes(1);
  await exitCode;
  signals.dispose();
  expect(source.listenerCount('SIGTERM') + source.listenerCount('SIGINT')).toBe(0);
});

test('a failed start is one line with its code; what was opened is closed', async () => {
  const error = Object.assign(new Error('bind'), { code: 'EADDRINUSE' });
  const { calls, lines, run } = setUp({ start: () => Promise.reject(error) });
  expect(await run()).toBe(1);
  expect(calls).toEqual(['start', 'stop']);
  expect(lines).toMatchObject([{ level: 'fatal', code: 'EADDRINUSE', msg: 'EADDRINUSE: bind' }]);
});

test.each([
  ['takes too long', () => never, 'KVR_STOP_TIMEOUT'],
  ['fails', () => Promise.reject(new InvariantError('m')), 'KVR_INVARIANT'],
])('a stop that %s exits with 1', async (_, stop, code) => {
  const { lines, run, source } = setUp({ stop });
  const exitCode = run();
  source.emit('SIGTERM', 'SIGTERM');
  expect(await exitCode).toBe(1);
  expect(lines.at(-1)).toMatchObject({ level: 'fatal', code });
});

test('only a defect of kvrelay itself shows its stack', () => {
  const { lines, logger } = setUp({});
  logFailure(logger, new TypeError('x'));
  logFailure(logger, new InvariantError('x'));
  logFailure(logger, new ConfigError({ setting: 's', allowed: 'a', remedy: 'r' }));
  expect(lines.map((line) => 'err' in line)).toEqual([true, true, false]);
});
