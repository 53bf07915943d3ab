/**
 * How much code a batch of `decode` runs through: `node bench/hot-path.mjs`, against the built package.
 *
 * Counts   lines of JavaScript that run between frames and envelopes in code that is warm, without sockets and the
 *          kernel; those of comments and blank ones do not count. A line runs where any part of it does.
 */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createRelay } from './relay-in-process.mjs';
import { table } from './report.mjs';
import { createStream } from './streams.mjs';

const WATCHED_BATCHES = 200;
const COMMENT = /^\s*(?:\/\/|\/?\*)/;

/** Functions and blocks that ran, by V8's own count. */
async function coverageOf(run) {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await session.post('Profiler.takePreciseCoverage');
  run();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result;
}

function ranLines(text, functions) {
  const ran = new Uint8Array(text.length);
  // Inner ranges come behind the ones around them; a function that did not run has only its own.
  for (const { ranges } of functions) {
    for (const { count, startOffset, endOffset } of ranges) {
      ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
    }
  }
  let at = 0;
  let lines = 0;
  for (const line of text.split('\n')) {
    const isRun = [...line].some(
      (letter, offset) => letter.trim() !== '' && ran[at + offset] === 1,
    );
    if (isRun && !COMMENT.test(line)) lines++;
    at += line.length + 1;
  }
  return lines;
}

const { batches, blockSize } = createStream('decode', true);
const relay = createRelay(blockSize);
for (const { frames } of batches.slice(0, -WATCHED_BATCHES)) relay.push(frames);
const coverage = await coverageOf(() => {
  for (const { frames } of batches.slice(-WATCHED_BATCHES)) relay.push(frames);
});
relay.stop();

const files = coverage
  .filter(({ url }) => url.includes('/dist/') && !url.includes('/node_modules/'))
  .map(({ url, functions }) => {
    const lines = ranLines(readFileSync(new URL(url), 'utf8'), functions);
    return { name: url.slice(url.indexOf('/dist/') + '/dist/'.length), lines };
  })
  .filter(({ lines }) => lines > 0)
  .sort((a, b) => b.lines - a.lines);
const total = files.reduce((sum, { lines }) => sum + lines, 0);
console.log(
  table(
    ['file', 'lines that run'],
    files.map(({ name, lines }) => [name, lines]),
  ),
);
console.log(
  `\n${files.length} files, ${total} lines; the ten longest ${files.slice(0, 10).reduce((sum, { lines }) => sum + lines, 0)}`,
);
