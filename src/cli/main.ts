#!/usr/bin/env node
/**
 * The command line: picks the command, and turns what it throws into one line and an exit code.
 *
 * stdout holds results only. All but the lifecycle is imported when it is wanted: the signal
 * handlers then stand before anything slow loads, and `--help` loads no native module.
 */
import type { Tool } from '../config/help-text.ts';
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
  const { helpText, isCommand, isTool, COMMANDS, TOOLS } = await import('../config/help-text.ts');
  if (command === '--help' || command === '-h') return print(helpText(null));
  const wantsHelp = argv.includes('--help') || argv.includes('-h');
  if (isTool(command)) return wantsHelp ? print(await toolHelp(command)) : runTool(command, argv);
  if (!isCommand(command)) {
    throw new ConfigError({
      setting: 'command',
      ...(command === undefined ? { problem: 'is missing' } : { value: command }),
      allowed: [...COMMANDS, ...TOOLS].join(', '),
      remedy: 'Start kvrelay --help to see what they do',
    });
  }
  if (wantsHelp) return print(helpText(command));
  if (command === 'demo') return (await import('./demo.ts')).demo(argv, signals);
  return (await import('./run.ts')).run(argv, signals);
}

async function runTool(tool: Tool, argv: readonly string[]): Promise<number> {
  if (tool === 'record') return (await import('./record.ts')).record(argv, signals);
  if (tool === 'play') return (await import('./play.ts')).play(argv, signals);
  if (tool === 'query') return (await import('./query.ts')).query(argv, signals);
  if (tool === 'doctor') return (await import('./doctor/doctor.ts')).doctor(argv, signals);
  return (await import('./inspect.ts')).inspect(argv, signals);
}

async function toolHelp(tool: Tool): Promise<string> {
  if (tool === 'record') return (await import('./record-flags.ts')).help();
  if (tool === 'play') return (await import('./play-flags.ts')).help();
  if (tool === 'query') return (await import('./query-flags.ts')).help();
  if (tool === 'doctor') return (await import('./doctor/flags.ts')).help();
  return (await import('./inspect-flags.ts')).help();
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
