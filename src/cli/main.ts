#!/usr/bin/env node
/**
 * The command line: picks the command, and turns what it throws into one line and an exit code.
 *
 * stdout holds results only. All but the lifecycle is imported when it is wanted: the signal
 * handlers then stand before anything slow loads, and `--help` loads no native module.
 */
import { ConfigError, errorLine } from '../errors.ts';
import { VERSION } from '../version.ts';
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE, logFailure, StopSignals } from './lifecycle.ts';

const signals = new StopSignals(process, () => process.exit(EXIT_FAILED));

process.on('uncaughtException', (error) => {
  void reportFailure(error).finally(() => process.exit(EXIT_FAILED));
});
process.exit(await main(process.argv.slice(2)).catch(reportFailure));

async function main([command, ...argv]: readonly string[]): Promise<number> {
  if (command === '--version') return print(`${VERSION}\n`);
  const { helpText, isCommand, COMMANDS } = await import('../config/help-text.ts');
  if (command === '--help' || command === '-h') return print(helpText(null));
  if (!isCommand(command)) {
    throw new ConfigError({
      setting: 'command',
      ...(command === undefined ? { problem: 'is missing' } : { value: command }),
      allowed: COMMANDS.join(', '),
      remedy: 'Start kvrelay --help to see what they do',
    });
  }
  if (argv.includes('--help') || argv.includes('-h')) return print(helpText(command));
  if (command === 'demo') return (await import('./demo.ts')).demo(argv, signals);
  return (await import('./run.ts')).run(argv, signals);
}

function print(result: string): number {
  process.stdout.write(result);
  return EXIT_OK;
}

/** A reader at a terminal gets the bare line, a log collector one in the form of all others. */
async function reportFailure(error: unknown): Promise<number> {
  if (process.stderr.isTTY) {
    process.stderr.write(`kvrelay: ${errorLine(error)}\n`);
  } else {
    const { createLogger } = await import('../log.ts');
    logFailure(createLogger({ level: 'fatal', format: 'json' }), error);
  }
  return error instanceof ConfigError ? EXIT_USAGE : EXIT_FAILED;
}
