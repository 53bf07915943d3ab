import { expect, test } from 'vitest';
import {
  assertInvariant,
  ConfigError,
  errorCode,
  errorLine,
  InvariantError,
  KvRelayError,
  oneLine,
  PayloadTooLargeError,
} from '../src/errors.ts';

test('ConfigError is one complete line, whatever the value holds', () => {
  const error = new ConfigError({
    setting: '--x',
    value: 'a\n\u001b[31m\u0085\u2028b',
    allowed: 'y',
    remedy: 'Give y',
  });
  const shown = "'a\\n\\u001b[31m\\u0085\\u2028b'";
  expect(error.message).toBe(`--x ${shown} is not possible; allowed: y. Give y`);
  expect(error).toMatchObject({ code: 'KVR_CONFIG', name: 'ConfigError', setting: '--x' });
  expect(error.remedy).toBe('Give y');
  expect(errorLine(error)).toBe(error.message);
});

test('ConfigError shortens a long value and masks what stands before an @', () => {
  const long = new ConfigError({ setting: 's', value: 'x'.repeat(999), allowed: 'a', remedy: 'r' });
  expect(long.message.length).toBeLessThan(200);
  const url = new ConfigError({
    setting: 's',
    value: 'nats://u:p/@x@h',
    allowed: 'a',
    remedy: 'r',
  });
  expect(url.message).toContain("'nats://***@h'");
});

test('PayloadTooLargeError says sizes, subject and remedy', () => {
  const error = new PayloadTooLargeError('a.b', 2000, 1000);
  expect(error).toBeInstanceOf(KvRelayError);
  expect(errorLine(error)).toBe(
    'KVR_PAYLOAD_TOO_LARGE: Cannot publish 2000 bytes to "a.b": the limit is 1000. ' +
      'Raise max_payload on the NATS server, or lower --max-batch-blocks',
  );
});

test('assertInvariant() throws only where the condition does not hold', () => {
  expect(() => assertInvariant('id', 'never')).not.toThrow();
  expect(() => assertInvariant(null, 'ids go up')).toThrow(InvariantError);
});

test.each([
  [Object.assign(new Error('listen\nx'), { code: 'EADDRINUSE' }), 'EADDRINUSE: listen\\nx'],
  [new TypeError('boom'), 'KVR_UNEXPECTED: boom'],
  [new InvariantError('m', { cause: new Error('why') }), 'KVR_INVARIANT: m (why)'],
  ['text', 'KVR_UNEXPECTED: text'],
  [undefined, 'KVR_UNEXPECTED: undefined'],
])('errorLine() of %s has the code first', (error, line) => {
  expect(errorLine(error)).toBe(line);
  expect(line.startsWith(errorCode(error))).toBe(true);
});

test('oneLine() leaves ordinary text alone', () => {
  expect(oneLine('"ü" \\ 日本')).toBe('"ü" \\ 日本');
});
