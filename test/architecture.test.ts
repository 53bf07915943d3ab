/**
 * The import table of the source tree, held against every file of `src`.
 *
 * The tree is the data flow: what a folder may import says which way the flow can go. The kernel's
 * AssemblyScript is another language and stays out.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const MAX_FILE_LINES = 250;

const GROUND_FLOOR = ['errors.ts', 'event-loop-lag.ts', 'stage.ts', 'log.ts', 'version.ts'];
const STAGES = ['listener', 'engines', 'processor', 'batching', 'dedup', 'indexer', 'sinks'];
const EDGES = ['connections', 'listener', 'sinks', 'router', 'stores', 'status', 'cli'];

/** Folders, what each may import besides itself and the ground floor. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  hashing: ['protocol'],
  metrics: ['protocol'],
  config: ['protocol'],
  connections: ['protocol', 'metrics'],
  listener: ['protocol', 'connections', 'metrics'],
  engines: ['protocol'],
  processor: ['protocol', 'hashing', 'metrics'],
  batching: ['protocol', 'metrics'],
  dedup: ['protocol', 'metrics'],
  indexer: ['protocol', 'metrics'],
  sinks: ['protocol', 'connections', 'metrics'],
  router: ['protocol', 'indexer', 'connections', 'metrics'],
  stores: ['protocol', 'engines', 'hashing', 'connections', 'metrics'],
  status: ['protocol', 'connections', 'metrics'],
};

/** The same for what lies above the folders; the pipeline gets native batches, not a listener. */
const ASSEMBLY: Readonly<Record<string, readonly string[]>> = {
  'pipeline.ts': ['protocol', 'hashing', 'metrics', 'config', 'router', ...STAGES.slice(1)],
  'event-plane.ts': Object.keys(FOLDERS),
  'discovery.ts': Object.keys(FOLDERS),
  'relay.ts': [...Object.keys(FOLDERS), 'pipeline.ts', 'event-plane.ts', 'relay-warnings.ts'],
  'relay-degraded.ts': [...Object.keys(FOLDERS), 'relay.ts'],
  'relay-status.ts': [...Object.keys(FOLDERS), 'relay.ts', 'relay-degraded.ts'],
  'relay-index.ts': [...Object.keys(FOLDERS), 'relay.ts'],
  'engine-source.ts': [...Object.keys(FOLDERS), 'relay.ts'],
  'recovery.ts': Object.keys(FOLDERS),
  'lmcache-source.ts': Object.keys(FOLDERS),
  'coordinator-status.ts': Object.keys(FOLDERS),
  'lmcache-status.ts': [...Object.keys(FOLDERS), 'lmcache-source.ts'],
  'worker-load.ts': [...Object.keys(FOLDERS), 'event-plane.ts'],
  'worker-chunks.ts': [...Object.keys(FOLDERS), 'pipeline.ts'],
  'worker-coordinator.ts': Object.keys(FOLDERS),
  'worker-stores.ts': [
    ...Object.keys(FOLDERS),
    'event-plane.ts',
    'pipeline.ts',
    'worker-chunks.ts',
    'worker-coordinator.ts',
  ],
  'chunks-status.ts': Object.keys(FOLDERS),
  'stores-status.ts': [...Object.keys(FOLDERS), 'chunks-status.ts', 'worker-stores.ts'],
  'sources-status.ts': [
    ...Object.keys(FOLDERS),
    'coordinator-status.ts',
    'lmcache-source.ts',
    'lmcache-status.ts',
    'stores-status.ts',
    'worker-stores.ts',
  ],
  'worker-metrics.ts': [
    ...Object.keys(FOLDERS),
    'chunks-status.ts',
    'coordinator-status.ts',
    'engine-source.ts',
    'lmcache-source.ts',
    'lmcache-status.ts',
    'relay.ts',
    'relay-degraded.ts',
    'relay-status.ts',
    'stores-status.ts',
    'worker-load.ts',
    'worker-stores.ts',
  ],
  'worker.ts': [
    ...Object.keys(FOLDERS),
    'discovery.ts',
    'recovery.ts',
    'relay.ts',
    'relay-index.ts',
    'relay-status.ts',
    'engine-source.ts',
    'event-plane.ts',
    'lmcache-source.ts',
    'sources-status.ts',
    'stores-status.ts',
    'worker-load.ts',
    'worker-metrics.ts',
    'worker-stores.ts',
  ],
  'relay-warnings.ts': [...Object.keys(FOLDERS), 'pipeline.ts'],
  'warm-up.ts': [...Object.keys(FOLDERS), 'relay.ts'],
  cli: [...Object.keys(FOLDERS), 'pipeline.ts', 'warm-up.ts', 'worker.ts'],
  'index.ts': [...Object.keys(FOLDERS), 'pipeline.ts', 'worker.ts'],
};

/** Names of packages and Node modules that reach outside of the process. */
const EDGE_ONLY =
  /^(node:)?(net|tls|dgram|dns|fs|https?|http2|child_process|zeromq|nats|etcd3)(\/|$)/;

interface SourceFile {
  /** From the project's folder, with slashes: `src/listener/sequencer.ts`. */
  readonly path: string;
  readonly text: string;
}

/** What a file may import, itself included; null where the table does not know its place. */
function allowedFor(place: string): readonly string[] | null {
  if (place === 'kernel') return ['kernel'];
  if (GROUND_FLOOR.includes(place)) return ['kernel', ...GROUND_FLOOR];
  const row = FOLDERS[place] ?? ASSEMBLY[place];
  return row === undefined ? null : [place, 'kernel', ...GROUND_FLOOR, ...row];
}

/** The part of a path that the table speaks of: a folder or a file directly in `src`. */
function placeOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function violationsOf(file: SourceFile): string[] {
  const code = withoutComments(file.text);
  return [
    ...importViolations(file.path, code),
    ...processViolations(file.path, code),
    ...(file.path !== 'src/index.ts' && isBarrel(code) ? ['only re-exports: no barrel files'] : []),
    ...lengthViolations(file.text),
  ].map((violation) => `${file.path}: ${violation}`);
}

function importViolations(path: string, code: string): string[] {
  const place = placeOf(path);
  const allowed = allowedFor(place);
  if (allowed === null) return [`src/${place} is not in the import table`];
  const isEdge = EDGES.includes(place);
  return importsIn(code).flatMap((specifier) => {
    if (!specifier.startsWith('.')) {
      if (specifier === '') return ['imports by a name that is computed'];
      return EDGE_ONLY.test(specifier) && !isEdge ? [`only edges may import ${specifier}`] : [];
    }
    const target = posix.join(posix.dirname(path), specifier);
    if (!target.startsWith('src/')) return [`imports ${specifier}, which is outside of src`];
    const targetPlace = placeOf(target);
    if (allowed.includes(targetPlace)) return [];
    const areStages = STAGES.includes(place) && STAGES.includes(targetPlace);
    const why = areStages ? 'a stage may not import another stage' : `${place} may not`;
    return [`imports ${target}: ${why}`];
  });
}

/** Specifiers of static imports, re-exports, `import()`, `require()`; '' where it is no literal. */
function importsIn(code: string): string[] {
  const statics = /\b(?:import|export)\s+(?:[\w*$\s{},]+?\bfrom\s*)?(['"])(.+?)\1/g;
  const calls = /(?<![.\w])(?:import|require)\s*\(\s*(?:(['"`])([^'"`$]+)\1)?/g;
  return [...code.matchAll(statics), ...code.matchAll(calls)].map((match) => match[2] ?? '');
}

function processViolations(path: string, code: string): string[] {
  const place = placeOf(path);
  const uses = (property: string): boolean =>
    new RegExp(
      `\\bprocess\\s*\\??\\.\\s*${property}\\b|\\bprocess\\[['"]${property}|` +
        `\\{[^{}]*\\b${property}\\b[^{}]*\\}\\s*(=\\s*process\\b|from\\s*['"](node:)?process['"])`,
    ).test(code);
  return [
    ...(uses('env') && !EDGES.includes(place) ? ['only edges may read process.env'] : []),
    ...(uses('exit') && place !== 'cli' ? ['only src/cli may call process.exit'] : []),
  ];
}

function isBarrel(code: string): boolean {
  const rest = code
    .replace(/\b(?:import|export)\s+[\w*$\s{},]+?\bfrom\s*(['"]).+?\1/g, '')
    .replace(/\bexport\s+(?:type\s+)?\{[^}]*\}/g, '');
  return /\bexport\b/.test(code) && /^[\s;]*$/.test(rest);
}

function lengthViolations(text: string): string[] {
  const lineCount = text.replace(/\n$/, '').split('\n').length;
  return lineCount > MAX_FILE_LINES ? [`${lineCount} lines, ${MAX_FILE_LINES} are allowed`] : [];
}

/** Strings are matched too, and kept, so that a `//` in an address starts no comment. */
function withoutComments(text: string): string {
  const token =
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\/.*|\/\*[\s\S]*?\*\//g;
  return text.replace(token, (_match, literal: string | undefined) => literal ?? ' ');
}

function sourceFiles(): SourceFile[] {
  const root = fileURLToPath(new URL('..', import.meta.url));
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => `src/${path.split(sep).join('/')}`)
    .filter((path) => path.endsWith('.ts') && !path.startsWith('src/kernel/assembly/'))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

test('every file of src keeps to the import table', () => {
  const files = sourceFiles();
  expect(files.length).toBeGreaterThan(0);
  expect(files.flatMap(violationsOf)).toEqual([]);
});

test('the table lets no stage import another', () => {
  const crossings = STAGES.flatMap((stage) =>
    (FOLDERS[stage] ?? []).filter((target) => STAGES.includes(target)),
  );
  expect(crossings).toEqual([]);
});

describe('the check reports', () => {
  const longFile = 'export const x = 1;\n'.repeat(MAX_FILE_LINES + 1);
  test.each([
    ['src/hashing/a.ts', "import { b } from '../metrics/b.ts';", /src\/metrics\/b.ts: hashing/],
    ['src/protocol/a.ts', "import type { B } from '../config/b.ts';", /protocol may not/],
    ['src/kernel/a.ts', "import { b } from '../errors.ts';", /kernel may not/],
    ['src/dedup/a.ts', "import {\n  b,\n} from '../batching/b.ts';", /another stage/],
    ['src/dedup/a.ts', "export * from '../batching/b.ts';\nconst c = 1;", /another stage/],
    ['src/dedup/a.ts', "const b = await import('../batching/b.ts');", /another stage/],
    ['src/dedup/a.ts', "import '../batching/b.ts';", /another stage/],
    ['src/dedup/a.ts', 'const b = await import(name);', /computed/],
    ['src/worker.ts', "import { run } from './cli/run.ts';", /worker.ts may not/],
    ['src/indexer/deep/a.ts', "import { b } from '../../worker.ts';", /indexer may not/],
    ['src/indexer/a.ts', "import b from '../../package.json';", /outside of src/],
    ['src/utils/a.ts', 'export const b = 1;', /not in the import table/],
    ['src/processor/a.ts', "import { connect } from 'node:net';", /only edges .* node:net/],
    ['src/processor/a.ts', "import { open } from 'fs/promises';", /only edges .* fs\/promises/],
    ['src/worker.ts', "import { Subscriber } from 'zeromq';", /only edges .* zeromq/],
    ['src/config/a.ts', 'const home = process.env.HOME;', /process.env/],
    ['src/config/a.ts', 'const { env, argv } = process;', /process.env/],
    ['src/status/a.ts', 'process.exit(1);', /process.exit/],
    ['src/status/a.ts', "import { exit } from 'node:process';", /process.exit/],
    ['src/metrics/index.ts', "// All.\nexport { b } from './b.ts';", /barrel/],
    ['src/metrics/index.ts', "import { b } from './b.ts';\nexport { b };", /barrel/],
    ['src/metrics/a.ts', longFile, /251 lines/],
  ])('%s holding %j', (path, text, report) => {
    expect(violationsOf({ path, text }).join('\n')).toMatch(report);
  });
});

describe('the check accepts', () => {
  test.each([
    [
      'src/listener/a.ts',
      "import { b } from '../connections/b.ts';\nimport { connect } from 'nats';",
    ],
    ['src/pipeline.ts', "import { dedup } from './dedup/dedup.ts';\nexport const p = dedup;"],
    ['src/cli/main.ts', "import { w } from '../worker.ts';\nprocess.exit(w(process.env));"],
    ['src/index.ts', "export { startWorker } from './worker.ts';"],
    ['src/dedup/a.ts', "// import { b } from '../batching/b.ts';\nconst url = 'nats://x';"],
    ['src/dedup/a.ts', "/** process.exit, import('../batching/b.ts') */\nexport type B = 'from';"],
    ['src/metrics/a.ts', "export { b } from './b.ts';\nexport const c = 1;"],
    ['src/batching/a.ts', "const { env } = options;\nimport { asyncScheduler } from 'rxjs';"],
  ])('%s holding %j', (path, text) => {
    expect(violationsOf({ path, text })).toEqual([]);
  });
});
