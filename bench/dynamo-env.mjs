/**
 * A Python environment with Dynamo's publisher, made once in the cache folder.
 *
 * Needs    python3 of 3.11 or newer with venv; PyPI the first time.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const DYNAMO_PACKAGE = 'ai-dynamo-runtime==1.6.1';
const PYTHONS = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11'];
const MIN_PYTHON_MINOR = 11;
const STEP_TIMEOUT_MS = 240_000;
const STAMP = 'kvrelay-bench';
const PIP_INSTALL = ['-m', 'pip', 'install', '--quiet', '--only-binary', ':all:'];

/** `{ python }` with Dynamo and `packages`, or `{ python: null, reason }` where it cannot be had. */
export function findDynamo(cacheFolder, packages = []) {
  const found = findRuntime(cacheFolder);
  if (found.python === null || packages.length === 0) return found;
  const stamp = join(cacheFolder, 'bench-venv', `${STAMP}-more`);
  if (textOf(stamp) === packages.join(' ')) return found;
  const reason = run(found.python, [...PIP_INSTALL, ...packages]);
  if (reason !== null) return { python: null, reason };
  writeFileSync(stamp, packages.join(' '));
  return found;
}

function findRuntime(cacheFolder) {
  const venv = join(cacheFolder, 'bench-venv');
  const venvPython = join(venv, 'bin', 'python');
  if (textOf(join(venv, STAMP)) === DYNAMO_PACKAGE && isRecent(venvPython)) {
    return { python: venvPython };
  }
  const python = PYTHONS.find(isRecent);
  if (python === undefined) {
    return { python: null, reason: `no python3 of version 3.${MIN_PYTHON_MINOR} or newer` };
  }
  rmSync(venv, { recursive: true, force: true });
  mkdirSync(cacheFolder, { recursive: true });
  const check = 'from dynamo.llm import KvEventPublisher';
  const steps = [
    [python, '-m', 'venv', venv],
    [venvPython, ...PIP_INSTALL, DYNAMO_PACKAGE],
    [venvPython, '-c', check],
  ];
  for (const [command, ...args] of steps) {
    const reason = run(command, args);
    if (reason !== null) return { python: null, reason };
  }
  writeFileSync(join(venv, STAMP), DYNAMO_PACKAGE);
  return { python: venvPython };
}

/** Why it failed; null where it did not. */
function run(command, args) {
  const step = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, PIP_NO_INPUT: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: STEP_TIMEOUT_MS,
  });
  if (step.status === 0) return null;
  const said = `${step.stdout}\n${step.stderr}`.trim().split('\n').at(-1);
  return `${args.slice(0, 3).join(' ')} failed: ${step.error?.message ?? said}`;
}

function isRecent(python) {
  const code = `import sys; sys.exit(sys.version_info < (3, ${MIN_PYTHON_MINOR}))`;
  return spawnSync(python, ['-c', code]).status === 0;
}

function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
