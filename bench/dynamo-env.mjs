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

/** `{ python }`, or `{ python: null, reason }` where it cannot be had. */
export function findDynamo(cacheFolder) {
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
  const pip = ['-m', 'pip', 'install', '--quiet', '--only-binary', ':all:'];
  const check = 'from dynamo.llm import KvEventPublisher';
  const steps = [
    [python, '-m', 'venv', venv],
    [venvPython, ...pip, DYNAMO_PACKAGE],
    [venvPython, '-c', check],
  ];
  for (const [command, ...args] of steps) {
    const step = spawnSync(command, args, {
      encoding: 'utf8',
      env: { ...process.env, PIP_NO_INPUT: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: STEP_TIMEOUT_MS,
    });
    if (step.status === 0) continue;
    const said = `${step.stdout}\n${step.stderr}`.trim().split('\n').at(-1);
    const why = step.error?.message ?? said;
    return { python: null, reason: `${args.slice(0, 3).join(' ')} failed: ${why}` };
  }
  writeFileSync(join(venv, STAMP), DYNAMO_PACKAGE);
  return { python: venvPython };
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
