/**
 * Processes of a bench: started, spoken to in lines, read from `/proc`, and never left behind.
 *
 * What a process says is lines of JSON on one of its outputs; anything else there is passed over.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const WAIT_MS = 180_000;
const STOP_MS = 10_000;
/** The unit of `/proc/PID/stat`: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_A_SECOND = 100;

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

/** Sees to it that a child does not outlive this process. */
export function endWithUs(child) {
  running.add(child);
  child.once('close', () => running.delete(child));
}

export class Program {
  #child;
  #said = [];
  #awaited = null;
  #tail = '';
  #ended;

  /** `speaksOn` is the output that is listened to: `stdout` or `stderr`. */
  constructor(command, args, { env = {}, speaksOn = 'stdout' } = {}) {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: 'pipe' });
    this.#child = child;
    endWithUs(child);
    child.stdin.on('error', () => undefined);
    for (const name of ['stdout', 'stderr']) {
      createInterface({ input: child[name] }).on('line', (line) => {
        this.#tail = `${this.#tail}\n${line}`.slice(-2000);
        if (name === speaksOn) this.#hear(line);
      });
    }
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => {
        this.#tail += error.message;
        resolve();
      });
      child.once('close', resolve);
    }).then(() => this.#awaited?.fail('has ended'));
  }

  get pid() {
    return this.#child.pid;
  }

  /** The next message, said before or after this call, for which `isWanted` holds. */
  async hear(isWanted) {
    const index = this.#said.findIndex(isWanted);
    if (index >= 0) return this.#said.splice(index, 1)[0];
    return await new Promise((resolve, reject) => {
      const settle = (act) => (value) => {
        clearTimeout(timer);
        this.#awaited = null;
        act(value);
      };
      const fail = settle((why) => reject(new Error(`${this.#name} ${why}: ${this.#tail}`)));
      const timer = setTimeout(() => fail('says nothing'), WAIT_MS);
      this.#awaited = { isWanted, take: settle(resolve), fail };
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) fail('has ended');
    });
  }

  get #name() {
    return this.#child.spawnargs.join(' ');
  }

  tell(line) {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Ends it by the end of its input, and where that does not do, by a signal. */
  async stop(signal = null) {
    this.#child.stdin.end();
    if (signal !== null) this.#child.kill(signal);
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
    await this.#ended;
    clearTimeout(impatience);
  }

  #hear(line) {
    if (!line.startsWith('{')) return;
    const message = JSON.parse(line);
    if (this.#awaited?.isWanted(message)) this.#awaited.take(message);
    else this.#said.push(message);
  }
}

/** User and system time of all threads so far. */
export function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name in parentheses may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

export function peakMemoryBytes(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
