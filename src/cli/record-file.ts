/** The file of a recorder: new, unless it is told otherwise, and its owner's alone. */
import { fchmodSync, fstatSync, openSync } from 'node:fs';
import { ConfigError, errorCode } from '../errors.ts';
import type { RecordFlags } from './record-flags.ts';

const OWNER_ONLY = 0o600;

/** Its descriptor. Throws ConfigError where the file is there already, or cannot be. */
export function createRecordingFile({ out, force }: Pick<RecordFlags, 'out' | 'force'>): number {
  let descriptor: number;
  try {
    descriptor = openSync(out, force ? 'w' : 'wx', OWNER_ONLY);
  } catch (error) {
    const exists = errorCode(error) === 'EEXIST';
    throw new ConfigError({
      setting: '--out',
      value: out,
      problem: exists ? 'is there already' : `cannot be written (${errorCode(error)})`,
      allowed: 'a file that is not there yet, in a folder that is',
      remedy: exists ? 'Give another name, or --force to overwrite it' : 'Correct the path',
    });
  }
  // An overwritten file keeps its mode, and a device is no file.
  if (fstatSync(descriptor).isFile()) fchmodSync(descriptor, OWNER_ONLY);
  return descriptor;
}
