/**
 * `node scripts/store-pictures.mjs [--print NAME]`: writes docs/stores-ways.svg and docs/stores-loss.svg, the pictures of
 * docs/stores.md, or prints one of them.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './setup.mjs';

const LINE = 17;
const INK = '#1b2b34';
const PALE = '#eef4f3';
const ACCENT = '#0a6b5e';

function text(x, y, content, more = '') {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" ${more}>${escaped}</text>`;
}

/** The first line is the title, unless there is none. */
function box(x, y, width, lines, isTitled = true) {
  const height = lines.length * LINE + 14;
  const rows = lines.map((line, index) =>
    text(x + 10, y + 20 + index * LINE, line, isTitled && index === 0 ? 'font-weight="600"' : ''),
  );
  const frame = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${PALE}" stroke="${ACCENT}"/>`;
  return { svg: [frame, ...rows].join('\n'), height, middle: y + height / 2 };
}

function arrow(fromX, fromY, toX, toY, isDashed = false) {
  const dashes = isDashed ? ' stroke-dasharray="5 4"' : '';
  return (
    `<line x1="${fromX}" y1="${fromY}" x2="${toX}" y2="${toY}" stroke="${ACCENT}" stroke-width="1.5"${dashes} ` +
    'marker-end="url(#tip)"/>'
  );
}

function picture(width, height, title, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"
  role="img" font-family="system-ui, sans-serif" font-size="13" fill="${INK}">
<title>${title}</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="${ACCENT}"/></marker></defs>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${parts.join('\n')}
</svg>
`;
}

const WAYS = [
  [['vLLM, SGLang, TensorRT-LLM', 'own stream, ZMQ', 'blocks with tokens and parents'], 'blocks'],
  [['Mooncake Store', 'events, ZMQ; master, HTTP', 'keys and media, no tokens'], 'both'],
  [['LMCache, event stream', 'one MP server, ZMQ', 'chunks in L1, tokens and parents'], 'both'],
  [
    ['LMCache, coordinator batches', 'all MP servers, HTTP', 'keys in L1 and L2, bytes, tokens'],
    'both',
  ],
  [['LMCache, bus', 'bridge in one MP server, ZMQ', 'every event, tokens of chunks'], 'metrics'],
];

/** Who tells what, and where it ends up. */
function ways() {
  const [left, middle, right] = [10, 330, 600];
  const parts = [];
  let y = 10;
  const sources = WAYS.map(([lines, use]) => {
    const made = box(left, y, 250, lines);
    y += made.height + 14;
    parts.push(made.svg);
    return { ...made, use };
  });
  const height = y;
  const outputs = [
    ['blocks', ['Routers: kv-events', 'device, host_pinned, disk,', 'external']],
    ['objects', ['Consumers: kv-objects', 'keys with all their media', '/api/objects']],
    ['metrics', ['Operators', '/metrics, status page']],
  ].map(([name, lines], index) => ({ name, ...box(right, 22 + index * 136, 210, lines) }));
  const relay = box(middle, height / 2 - 45, 170, [
    'kvrelay',
    'order, losses, restarts',
    'one state a store',
    'blocks by rank',
  ]);
  parts.push(relay.svg, ...outputs.map(({ svg }) => svg));
  for (const [index, { middle: at, use }] of sources.entries()) {
    const to = relay.middle + (index - (sources.length - 1) / 2) * 16;
    parts.push(arrow(left + 250, at, middle - 3, to, use === 'metrics'));
  }
  for (const [index, { middle: at }] of outputs.entries()) {
    parts.push(arrow(middle + 170, relay.middle + (index - 1) * 24, right - 3, at));
  }
  return picture(820, height, 'What tells kvrelay of caches, and whom it tells', parts);
}

const LOSSES = [
  ['engine', 'replay from the engine; what stays missing: counted or a clear'],
  ['Mooncake, with its master', 'suspect, compared with the master, believed again'],
  ['Mooncake, alone', 'everything given up; known again as it is stored'],
  ['LMCache, event stream', 'everything given up; its log is read on'],
  ['LMCache, coordinator batches', "that server's own and the pools it mounts given up"],
  ['LMCache, bus', 'replay from the bridge; what stays missing: metrics too low'],
];

/** What a loss costs, way by way. */
function losses() {
  const parts = [];
  let y = 10;
  for (const [who, what] of LOSSES) {
    const source = box(10, y, 240, [who]);
    const outcome = box(330, y, 480, [what], false);
    parts.push(source.svg, outcome.svg, arrow(250, source.middle, 327, source.middle));
    parts.push(text(268, source.middle - 6, 'a loss'));
    y += source.height + 12;
  }
  return picture(820, y, 'What becomes of what is held when something was lost', parts);
}

const PICTURES = { 'stores-ways': ways(), 'stores-loss': losses() };

if (process.argv[2] === '--print') {
  process.stdout.write(PICTURES[process.argv[3]] ?? '');
} else {
  for (const [name, svg] of Object.entries(PICTURES)) {
    writeFileSync(join(ROOT, 'docs', `${name}.svg`), svg);
  }
}
