/**
 * How long a stock Dynamo 1.6.1 router takes to join a relay of many blocks, and to get one lost message back.
 *
 *   node bench/join-time.mjs [--blocks 1000,100000,1000000]
 *
 * Engine, relay, worker and router are processes of their own on the ZMQ plane, with a broker in this one that can
 * lose a message. A router is asked for some 30 prompts again and again: it has joined once it has all of each. What it
 * then holds is compared with `/api/dump`, block by block. Prints a table.
 *
 * join         from the making of the router
 * loop held    the longest hold of the relay's event loop meanwhile, `kvrelay_event_loop_lag_seconds`; and in two
 *              seconds before, in which it had nothing to do: what the machine adds
 * repair       of a message that was lost: from the sending of the next one, and where none follows, from the loss
 * resident     bytes by which the relay grew, over blocks: index, reference counts, the ring of events, buffers
 *
 * Needs    what `npm run bench` needs for Dynamo's publisher.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureBuilt, ensureInstalled, fail, ROOT, say } from '../scripts/setup.mjs';
import { DYNAMO_PACKAGE, findDynamo } from './dynamo-env.mjs';
import { BLOCK_SIZE, CHAIN_BLOCKS, ChainEngine, LossyBroker } from './join-peers.mjs';
import { Program } from './processes.mjs';
import { table } from './report.mjs';

const PROBES = 30;
/** By then a relay has sent heartbeats. */
const HEARTBEATS_MS = 4000;
const QUIET_MS = 2000;
const LOOKS = 10;
const LOOK_MS = 200;
const WAIT_MS = 120_000;
const PEERS = fileURLToPath(new URL('../test/peers', import.meta.url));
const KVRELAY = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

function nowNs() {
  return process.hrtime.bigint();
}

function msSince(startNs, endNs) {
  return Math.round(Number(BigInt(endNs) - BigInt(startNs)) / 1e5) / 10;
}

class Relay {
  #program;
  #url;

  async start(flags) {
    const args = [KVRELAY, 'run', '--http', '127.0.0.1:0', '--log-format', 'json', ...flags];
    this.#program = new Program(process.execPath, args, { speaksOn: 'stderr' });
    this.#url = (await this.#program.hear(({ msg }) => msg === 'kvrelay is running')).http;
    await until(async () => (await this.#get('health/ready')).ok);
  }

  async holds(blocks) {
    await until(async () => {
      const { ranks } = await (await this.#get('api/status')).json();
      return ranks[0].blocks.device === blocks;
    });
  }

  async metric(name) {
    const text = await (await this.#get('metrics')).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  }

  /** Of `/api/dump`, as a router's program makes it of what the router holds; and how long the reading took. */
  async digest() {
    const startMs = performance.now();
    const dump = await (await this.#get('api/dump')).text();
    const readMs = Math.round(performance.now() - startMs);
    const lines = dump.split('\n').slice(0, -1);
    const texts = lines.map((line) => {
      const row = JSON.parse(line);
      const { worker_id, dp_rank, storage_tier, parent_hash, block_hash, tokens_hash } = row;
      const place = `${worker_id} ${dp_rank} ${storage_tier} ${parent_hash ?? ''}`;
      return `${place} ${block_hash} ${tokens_hash}\n`;
    });
    const hash = createHash('sha256');
    for (const text of texts.sort()) hash.update(text);
    return { digest: hash.digest('hex'), readMs };
  }

  stop() {
    return this.#program.stop('SIGTERM');
  }

  #get(path) {
    return fetch(new URL(path, this.#url));
  }
}

async function until(isSo) {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error('kvrelay is late');
    await sleep(50);
  }
}

function ask(router, question) {
  router.tell(JSON.stringify(question));
  return router.hear(({ state }) => state === 'answer');
}

/** Holds router and relay against each other; events may be on their way still. */
async function compared(relay, router) {
  for (let look = 1; ; look++) {
    const { digest, readMs } = await relay.digest();
    const held = await ask(router, { ask: 'digest' });
    const isSame = held.digest === digest;
    if (isSame || look === LOOKS) return { isSame, readMs };
    await sleep(LOOK_MS);
  }
}

async function measure(python, blocks, owned) {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  owned.push(() => rmSync(folder, { recursive: true, force: true }));
  const [broker, engine, relay] = [new LossyBroker(), new ChainEngine(), new Relay()];
  const place = [
    '--namespace',
    'bench',
    '--discovery',
    'file',
    '--discovery-dir',
    folder,
    '--event-plane',
    'zmq',
  ];
  place.push('--zmq-broker', await broker.start(), '--block-size', `${BLOCK_SIZE}`);
  owned.push(() => broker.stop());
  const startPeer = (name, flags = []) => {
    const peer = new Program(python, [join(PEERS, `${name}.py`), ...place, ...flags]);
    owned.push(() => peer.stop());
    return peer;
  };
  await startPeer('dynamo_worker').hear(({ state }) => state === 'ready');
  const endpoint = await engine.start();
  owned.push(() => engine.stop());
  await relay.start([...place, '--engine-endpoint', endpoint]);
  owned.push(() => relay.stop());
  await engine.subscribed();

  const memoryBefore = await relay.metric('process_resident_memory_bytes');
  const prompts = [];
  const chains = blocks / CHAIN_BLOCKS;
  for (let chain = 0; chain < chains; chain++) {
    const tokens = await engine.storeChain();
    if (chain % Math.ceil(chains / PROBES) === 0 || chain === chains - 1) prompts.push({ tokens });
  }
  await relay.holds(blocks);
  const resident = (await relay.metric('process_resident_memory_bytes')) - memoryBefore;

  // Reading it starts it anew.
  await relay.metric('kvrelay_event_loop_lag_seconds');
  await sleep(QUIET_MS);
  const quietHeld = await relay.metric('kvrelay_event_loop_lag_seconds');
  const router = startPeer('dynamo_router', ['--interval', '0']);
  const joined = await ask(router, { ask: 'whole', prompts });
  const loopHeld = await relay.metric('kvrelay_event_loop_lag_seconds');

  const repair = async (nextAfterMs) => {
    const lost = broker.loseOne();
    const missed = { tokens: await engine.storeChain() };
    await lost;
    const startNs = nowNs();
    const found = ask(router, { ask: 'whole', prompts: [missed] });
    await Promise.race([found, sleep(nextAfterMs)]);
    await engine.storeChain(1);
    return msSince(startNs, (await found).whole_ns);
  };
  const repairMs = await repair(0);
  const quietRepairMs = await repair(HEARTBEATS_MS);
  const { isSame, readMs } = await compared(relay, router);
  return {
    blocks,
    joinMs: msSince(joined.made_ns, joined.whole_ns),
    quietHeldMs: Math.round(quietHeld * 1e4) / 10,
    loopHeldMs: Math.round(loopHeld * 1e4) / 10,
    repairMs,
    quietRepairMs,
    residentBytes: Math.round(resident / blocks),
    dumpMs: readMs,
    isSame,
  };
}

ensureInstalled();
ensureBuilt();
const { values } = parseArgs({
  options: { blocks: { type: 'string', default: '1000,100000,1000000' } },
});
const cache = resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'));
const { python, reason } = findDynamo(cache);
if (python === null) fail(`no ${DYNAMO_PACKAGE}: ${reason}`);
const rows = [];
for (const blocks of values.blocks.split(',').map(Number)) {
  const owned = [];
  try {
    const figures = await measure(python, blocks, owned);
    if (!figures.isSame) fail(`the router's ${blocks} blocks are not those of /api/dump`);
    rows.push(figures);
    say(`${blocks} blocks: ${JSON.stringify(figures)}`);
  } finally {
    for (const end of owned.reverse()) await end();
  }
}
const columns = [
  ['blocks', 'blocks'],
  ['join, ms', 'joinMs'],
  ['loop held, ms', 'loopHeldMs'],
  ['and before, ms', 'quietHeldMs'],
  ['repair by the next, ms', 'repairMs'],
  ['with none next, ms', 'quietRepairMs'],
  ['resident, bytes/block', 'residentBytes'],
  ['/api/dump, ms', 'dumpMs'],
];
const cells = rows.map((figures) => columns.map(([, name]) => figures[name]));
process.stdout.write(
  `\n${table(
    columns.map(([title]) => title),
    cells,
  )}\n`,
);
