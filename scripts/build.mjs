/**
 * Builds the package: the WebAssembly kernel into a TypeScript file, then `src` into `dist`.
 *
 *   node scripts/build.mjs [--kernel-only] [--force]
 *
 * Skips    a step whose inputs have the content they had when it last succeeded.
 * Owns     `dist/`, `src/kernel/kernel.wasm.ts`, `.cache/build.json`; one build runs at a time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensureInstalled, fail, ROOT, say, toolPath } from './setup.mjs';

const KERNEL_SOURCE = 'src/kernel/assembly';
const KERNEL_OUTPUT = 'src/kernel/kernel.wasm.ts';
const ENTRY = 'dist/cli/main.js';
const STAMPS = '.cache/build.json';
const LOCK = '.cache/build.lock';
const LOCK_WAIT_MS = 120_000;

// `abort=` turns what is left of AssemblyScript's aborts into traps, which need no import.
const ASC_FLAGS =
  '--optimizeLevel 3 --shrinkLevel 0 --runtime stub --enable simd --noAssert --use abort=';

async function buildKernel(force) {
  const inputs = hashOf(
    [...filesBelow(KERNEL_SOURCE), 'scripts/build.mjs'],
    versionOf('assemblyscript'),
  );
  if (!force && isFresh('kernel', inputs, [KERNEL_OUTPUT])) return;
  say('compiling the kernel');
  const { default: asc } = await import('assemblyscript/asc');
  let wasm = null;
  const args = [`${KERNEL_SOURCE}/index.ts`, '--baseDir', ROOT, '--outFile', 'kernel.wasm'];
  const { error } = await asc.main([...args, ...ASC_FLAGS.split(' ')], {
    stderr: process.stderr,
    writeFile: (_name, contents) => {
      wasm = contents;
    },
  });
  if (error !== null || wasm === null) fail(`the kernel does not compile: ${error?.message}`);

  const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm));
  if (imports.length > 0) {
    const names = imports.map(({ module, name }) => `${module}.${name}`).join(', ');
    fail(`the kernel must import nothing, but imports ${names}`);
  }
  const base64 = Buffer.from(wasm).toString('base64');
  writeIfChanged(
    KERNEL_OUTPUT,
    `// Generated from ${KERNEL_SOURCE} by scripts/build.mjs; not kept in git.\n` +
      `export const KERNEL_WASM_BASE64: string = '${base64}';\n`,
  );
  stamp('kernel', inputs);
}

function buildPackage(force) {
  const sources = filesBelow('src').filter((path) => !path.startsWith(`${KERNEL_SOURCE}/`));
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package.json', 'package-lock.json'];
  const inputs = hashOf(
    [...sources, ...settings.filter((path) => existsSync(join(ROOT, path))), 'scripts/build.mjs'],
    versionOf('typescript'),
  );
  const outputs = sources.filter((path) => path.endsWith('.ts')).flatMap(outputsOf);
  if (!force && isFresh('package', inputs, outputs)) return;
  say('compiling src to dist');
  const args = [toolPath('typescript', 'tsc'), '-p', 'tsconfig.build.json', '--noEmitOnError'];
  const tsc = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (tsc.status !== 0) fail('src does not compile');

  // Clearing first would take the files from under a relay that is being started meanwhile.
  const wanted = new Set(outputs);
  for (const path of filesBelow('dist')) if (!wanted.has(path)) rmSync(join(ROOT, path));
  if (existsSync(join(ROOT, ENTRY))) chmodSync(join(ROOT, ENTRY), 0o755);
  stamp('package', inputs);
}

function outputsOf(source) {
  const base = source.replace(/^src\//, 'dist/').replace(/\.ts$/, '');
  return [`${base}.js`, `${base}.js.map`, `${base}.d.ts`];
}

/** Paths of all files below a folder, relative to the project, sorted; none where it is missing. */
function filesBelow(folder) {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(path) : [path];
    })
    .sort((a, b) => (a < b ? -1 : 1));
}

function hashOf(paths, compiler) {
  const hash = createHash('sha256').update(compiler);
  for (const path of paths) {
    const content = readFileSync(join(ROOT, path));
    hash.update(`\n${path} ${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

function versionOf(packageName) {
  const path = join(ROOT, 'node_modules', packageName, 'package.json');
  return `${packageName}@${JSON.parse(readFileSync(path, 'utf8')).version}`;
}

function readStamps() {
  try {
    return JSON.parse(readFileSync(join(ROOT, STAMPS), 'utf8'));
  } catch {
    return {};
  }
}

function isFresh(step, inputs, outputs) {
  return readStamps()[step] === inputs && outputs.every((path) => existsSync(join(ROOT, path)));
}

function stamp(step, inputs) {
  writeIfChanged(STAMPS, `${JSON.stringify({ ...readStamps(), [step]: inputs }, null, 2)}\n`);
}

/** A file whose content stays keeps its time, so that watchers and compilers leave it alone. */
function writeIfChanged(path, text) {
  const target = join(ROOT, path);
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  const draft = `${target}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, target);
}

/** A link is made and filled in one step; it points to the process id of the build it stands for. */
async function takeLock() {
  const lock = join(ROOT, LOCK);
  mkdirSync(dirname(lock), { recursive: true });
  const deadlineMs = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      symlinkSync(String(process.pid), lock);
      process.on('exit', () => rmSync(lock, { force: true }));
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = lockHolder(lock);
    if (holder !== null && !isAlive(holder)) rmSync(lock, { force: true });
    else if (Date.now() > deadlineMs) {
      fail(`process ${holder} holds ${relative(ROOT, lock)}; remove it if no build is running`);
    } else await sleep(50);
  }
}

function lockHolder(lock) {
  try {
    return Number(readlinkSync(lock));
  } catch {
    return null;
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

const flags = new Set(process.argv.slice(2));
const unknown = [...flags].filter((flag) => flag !== '--force' && flag !== '--kernel-only');
if (unknown.length > 0) fail(`build.mjs does not know ${unknown.join(' ')}`);
ensureInstalled();
await takeLock();
await buildKernel(flags.has('--force'));
if (!flags.has('--kernel-only')) buildPackage(flags.has('--force'));
