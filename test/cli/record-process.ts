/** A command around recordings as a user starts it: the built program in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type RecordedMessage, RecordingReader, RecordingWriter } from '../../src/cli/recording.ts';
import { eventually } from '../support/plane-collector.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export type Json = Record<string, unknown>;

export class CliProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #closed: Promise<unknown>;

  constructor(
    args: readonly string[],
    nodeArgs: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const { PATH = '' } = process.env;
    this.child = spawn(process.execPath, [...nodeArgs, PROGRAM, ...args], {
      env: { PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#closed = once(this.child, 'close');
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  get logs(): Json[] {
    return jsonLines(this.stderr);
  }

  /** The objects on stdout, a line each. */
  get results(): Json[] {
    return jsonLines(this.stdout);
  }

  /** The lines of stdout that are whole. */
  get lines(): string[] {
    return this.stdout.split('\n').slice(0, -1);
  }

  /** Fails where `condition` does not come to hold. */
  async sees(condition: () => boolean): Promise<void> {
    if (await eventually(condition, 15_000)) return;
    throw new Error(`still not so: ${String(condition)}\n${this.stdout}\n${this.stderr}`);
  }

  async logged(message: string): Promise<void> {
    await this.sees(() => this.logs.some(({ msg }) => msg === message));
  }

  async reaches(state: string): Promise<void> {
    await this.sees(() => this.logs.some((line) => line.state === state));
  }

  /** Resolves with the exit code, after a signal where one is given. */
  async exitCode(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.child.kill(signal);
    await this.#closed;
    return this.child.exitCode;
  }
}

function jsonLines(text: string): Json[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Json);
}

/** A folder that goes with the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-recording-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A recording of these messages, one each 10 ms; each inner list is a member of its own. */
export function recordingOf(...members: readonly (readonly (readonly Uint8Array[])[])[]): Buffer {
  const parts: Uint8Array[] = [];
  const header = {
    format: 'kvrelay-recording',
    version: 1,
    engine: 'a test',
    block_size: 4,
    recorded_at: '2026-01-02T03:04:05.678Z',
    description: '',
  } as const;
  const writer = new RecordingWriter(header, (bytes) => void parts.push(bytes), 1);
  let atMs = 0;
  for (const messages of members) {
    for (const frames of messages) {
      writer.add({ atMs, frames });
      atMs += 10;
    }
    writer.flush();
  }
  return Buffer.concat(parts);
}

export function messagesIn(path: string): { messages: RecordedMessage[]; tornTail: string | null } {
  const reader = new RecordingReader(readFileSync(path));
  const messages = [...reader.messages()];
  return { messages, tornTail: reader.tornTail };
}
