/**
 * `kvrelay query`: one question to a running relay.
 *
 * stdout   the answer, text or JSON. Whoever reads it may leave: that ends the command, cleanly.
 * Fails    where there is no answer, or a signal comes before its end.
 */
import { createReadStream } from 'node:fs';
import { ConfigError, messageOf } from '../errors.ts';
import { createLogger } from '../log.ts';
import { textLine } from './inspect-line.ts';
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE, logFailure, type StopSignals } from './lifecycle.ts';
import { blockLine, eventPage, matchText, objectLine } from './query-answers.ts';
import { loadQueryFlags, type QueryFlags } from './query-flags.ts';
import { statusText } from './query-status.ts';
import { type Asked, QueryError, RelayClient } from './relay-client.ts';
import { ResultPrinter } from './result-printer.ts';

/** As much as a relay takes. */
const MAX_REQUEST_BYTES = 2 * 1024 * 1024;

/** Resolves with the exit code; throws ConfigError before anything is asked. */
export async function query(argv: readonly string[], signals: StopSignals): Promise<number> {
  const flags = loadQueryFlags(argv, process.env);
  const body = flags.question === 'match' ? await promptOf(flags) : undefined;
  const logger = createLogger({ level: flags.logLevel, format: flags.logFormat });
  const ended = new AbortController();
  const results = new ResultPrinter(() => ended.abort());
  void signals.first.then(() => ended.abort());
  const timeoutMs = flags.timeoutSeconds * 1000;
  const relay = new RelayClient({ address: flags.http, timeoutMs, ended: ended.signal });
  try {
    await answer(flags, relay, results, body);
    await results.finish();
    return EXIT_OK;
  } catch (error) {
    if (!results.hasReader) return EXIT_OK;
    await results.finish();
    const remedy = 'Ask again, and let it end';
    const stopped = new QueryError('A signal came before the whole answer', remedy);
    logFailure(logger, signals.received ? stopped : error);
    return error instanceof QueryError && error.isUsage ? EXIT_USAGE : EXIT_FAILED;
  }
}

async function answer(
  flags: QueryFlags,
  relay: RelayClient,
  results: ResultPrinter,
  body: string | undefined,
): Promise<void> {
  const { question, json: isJson } = flags;
  const asked = questionOf(flags, body);
  if (question === 'dump' || question === 'objects') {
    const shape = question === 'dump' ? blockLine : objectLine;
    for await (const rows of relay.lines(asked, shape)) {
      const lines = rows.map(({ text, value }) => (isJson ? `${text}\n` : textLine(value)));
      await results.write(lines.join(''), lines.length);
    }
    return;
  }
  if (question === 'events') {
    await answerEvents(flags, relay, results);
    return;
  }
  const shape = question === 'status' ? statusText : matchText;
  const { text, value } = await relay.json(asked, shape);
  await results.write(isJson ? `${text}\n` : value);
}

/** Page by page, up to the event that was the newest when it was asked. */
async function answerEvents(
  flags: QueryFlags,
  relay: RelayClient,
  results: ResultPrinter,
): Promise<void> {
  let range = { start: flags.start, end: flags.end };
  for (let page = 1; results.hasReader; page++) {
    const { text, value } = await relay.json(questionOf({ ...flags, ...range }), eventPage);
    if (flags.json) await results.write(`${text}\n`);
    else {
      // Of later pages only where the range is lost to the relay meanwhile.
      if (page === 1 || value.kind !== 'events') await results.write(value.headText);
      for (const line of value.eventTexts) await results.write(line);
    }
    const { nextEventId, lastEventId } = value;
    if (nextEventId === null) return;
    const start = BigInt(nextEventId);
    if (range.start !== null && start <= range.start) {
      const problem = `The relay's pages do not go on: behind ${range.start} comes ${start}`;
      throw new QueryError(problem, 'Ask for a smaller range with --start and --end');
    }
    const end = range.end ?? (lastEventId === null ? null : BigInt(lastEventId));
    if (end !== null && start > end) return;
    range = { start, end };
  }
}

function questionOf({ question, ...flags }: QueryFlags, body?: string): Asked {
  const search = new URLSearchParams();
  const { rank, start, end, source, backend, tenant, prefix } = flags;
  const values = { rank, start, end, source, backend, tenant, prefix };
  for (const [name, value] of Object.entries(values)) {
    if (value !== null) search.set(name, String(value));
  }
  const path = `/api/${question}${search.size > 0 ? `?${search.toString()}` : ''}`;
  return body === undefined ? { path } : { path, body };
}

/** What `match` asks about, as JSON; throws ConfigError where the file is none. */
async function promptOf({ tokens, loraName, request }: QueryFlags): Promise<string> {
  if (request === null) {
    return JSON.stringify({ tokens, ...(loraName !== null && { lora_name: loraName }) });
  }
  const refusal = (problem: string): ConfigError =>
    new ConfigError({
      setting: '--request',
      value: request,
      problem,
      allowed: `a readable file with one JSON object, at most ${MAX_REQUEST_BYTES} bytes`,
      remedy: 'Correct the file or its path',
    });
  const text = await readBounded(request).catch((error: unknown) => {
    throw refusal(`cannot be read (${messageOf(error)})`);
  });
  if (text === null) throw refusal('is too large');
  try {
    const prompt: unknown = JSON.parse(text);
    if (typeof prompt === 'object' && prompt !== null) return text;
  } catch {
    // What is wrong with it is its content, and that is shown nowhere.
  }
  throw refusal('holds no JSON object');
}

/** Null where there are more bytes than a prompt has; `-` is stdin. */
async function readBounded(path: string): Promise<string | null> {
  const source = path === '-' ? process.stdin : createReadStream(path);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_REQUEST_BYTES) return null;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
