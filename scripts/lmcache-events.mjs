/**
 * `node scripts/lmcache-events.mjs [--print]`: writes docs/lmcache-events.md from the table of contracts in
 * the built package, or prints it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, ROOT } from './setup.mjs';

const TYPES = {
  int: 'int',
  float: 'float',
  bool: 'bool',
  text: 'str',
  keys: 'list[ObjectKey]',
  objectMetas: 'list[L1ObjectMeta]',
  saltCounts: 'dict[str, int]',
  ints: 'list[int]',
  texts: 'list[str]',
  intLists: 'list[list[int]]',
  hashes: 'list[bytes]',
  hashesOrNil: 'list[bytes or None]',
  blockRecords: 'list[BlockAllocationRecord]',
  phaseSamples: 'list[tuple]',
  capacitySnapshot: 'CapacitySnapshot',
  map: 'dict[str, Any]',
};

const INTRO = `# LMCache's events

Every event type of LMCache's EventBus from 0.5.1 to 0.5.6, as kvrelay checks them. An event that breaks its contract still flows,
without the key that broke it; the violation is counted by event type and key (\`kvrelay_lmcache_contract_violations_total\`).
Event types that are not here, and keys that are not here, are accepted and counted.

- **versions**: where nothing is said, all of them. A key that has come or gone with a version is asked of that version only, and where the publisher's
  version is not known, of none.
- **session**: whether the event carries the id of its request.
- **stream**: recorded by a GPU stream, which keeps integers and booleans and makes a text of everything else: nil is read as absent, 0 and 1 as booleans,
  a number's text as the number.
- **absent**: the key may be missing or nil.

This page is made by \`node scripts/lmcache-events.mjs\`; the table is \`src/engines/lmcache/contracts.ts\`.
`;

const SECTIONS = [
  ['L1 and the storage manager', /^(L1|SM)_/],
  ['L2', /^L2_/],
  ['Time-outs and traces', /^(TIMEOUT|TRACE)_/],
  ['Multiprocess server', /^MP_/],
  ['Blend server', /^CB_/],
];

function versionsOf({ since, until }) {
  if (since !== undefined && until !== undefined) return `${since} to ${until}`;
  if (since !== undefined) return `from ${since}`;
  return until === undefined ? '' : `to ${until}`;
}

function absentOf({ absent }) {
  if (absent === undefined) return '';
  const where = absent.where === undefined ? '' : ` (\`${absent.where}\` is ${absent.is})`;
  return `absent: ${absent.why}${where}`;
}

function fieldText([name, field]) {
  const values = field.values?.map((value) => (value === '' ? 'empty' : `\`${value}\``)).join(', ');
  const notes = [versionsOf(field), values && `one of ${values}`, absentOf(field)].filter(Boolean);
  return `\`${name}\` ${TYPES[field.type]}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`;
}

function rowOf(name, contract) {
  const marks = [
    contract.session && (contract.session === 'always' ? 'session' : 'session if known'),
    contract.isOnStream && 'stream',
  ].filter(Boolean);
  const fields = Object.entries(contract.fields).map(fieldText).join('<br>') || '*(none)*';
  const cells = [`\`${name}\``, `\`${contract.value}\``, versionsOf(contract), marks.join(', ')];
  return `| ${[...cells, contract.by, fields].join(' | ')} |`;
}

function page(contracts) {
  const sections = SECTIONS.map(([title, names]) => {
    const rows = Object.entries(contracts).filter(([name]) => names.test(name));
    return [
      `## ${title}`,
      '',
      '| Event type | on the wire | versions | | published by | metadata |',
      '|---|---|---|---|---|---|',
      ...rows.map(([name, contract]) => rowOf(name, contract)),
      '',
    ].join('\n');
  });
  return `${INTRO}\n${sections.join('\n')}`;
}

const isPrinted = process.argv.includes('--print');
if (!isPrinted) ensureBuilt();
const table = pathToFileURL(join(ROOT, 'dist', 'engines', 'lmcache', 'contracts.js')).href;
const text = page((await import(table)).CONTRACTS);
if (isPrinted) process.stdout.write(text);
else writeFileSync(join(ROOT, 'docs', 'lmcache-events.md'), text);
