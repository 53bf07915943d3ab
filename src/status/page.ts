/**
 * The status page: one HTML document that loads nothing but `/api/status` and `/api/stream`.
 *
 * Its script and style are named by hash in the policy it is served with, so nothing else runs even
 * if markup were smuggled in; the script itself sets text only, never markup.
 */
import { createHash } from 'node:crypto';
import { PAGE_CHARTS_SCRIPT } from './page-charts.ts';
import { PAGE_FLOW_SCRIPT } from './page-flow.ts';
import { PAGE_FORMAT_SCRIPT } from './page-format.ts';
import { PAGE_HISTORY_SCRIPT } from './page-history.ts';
import { PAGE_LIVE_SCRIPT } from './page-live.ts';
import { PAGE_LMCACHE_SCRIPT } from './page-lmcache.ts';
import { PAGE_PANELS_SCRIPT } from './page-panels.ts';
import { PAGE_RANK_STYLE } from './page-rank-style.ts';
import { PAGE_RANKS_SCRIPT } from './page-ranks.ts';
import { PAGE_BASE_STYLE } from './page-style.ts';
import { PAGE_VIEW_SCRIPT } from './page-view.ts';

export interface StatusPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

const ICON =
  'data:image/svg+xml,' +
  "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E" +
  "%3Crect width='16' height='16' rx='3' fill='%230a6b5e'/%3E" +
  "%3Cpath d='M2 8h4m4 0h4M8 5.5v5' stroke='white' stroke-width='1.6' fill='none'/%3E" +
  "%3Ccircle cx='8' cy='8' r='2.4' fill='white'/%3E%3C/svg%3E";

const BODY = `
<a class="skip" href="#main">Skip to the status</a>
<header class="top">
  <h1>kvrelay</h1>
  <p id="state" class="state" data-tone="wait">Connecting</p>
  <p id="announcement" class="unseen" role="status" aria-live="polite"></p>
  <dl class="facts">
    <div><dt>Version</dt><dd id="version">–</dd></div>
    <div><dt>Mode</dt><dd id="compat">–</dd></div>
    <div><dt>Uptime</dt><dd id="uptime">–</dd></div>
    <div><dt>This page</dt><dd id="link">–</dd></div>
  </dl>
</header>
<main id="main">
  <noscript><p>This page needs JavaScript. The same values: <a href="api/status">/api/status</a>,
  <a href="metrics">/metrics</a>.</p></noscript>
  <section id="lost" aria-labelledby="lost-title" hidden>
    <h2 id="lost-title">No answer from the relay</h2>
    <p><span id="lost-age"></span> The page goes on by itself once the relay answers again.</p>
  </section>
  <section id="attention" aria-labelledby="attention-title" hidden>
    <h2 id="attention-title">Needs attention</h2>
    <ul id="notices" class="notices"></ul>
  </section>
  <section aria-labelledby="flow-title">
    <h2 id="flow-title">From engine to router</h2>
    <ol id="flow" class="flow"></ol>
  </section>
  <section aria-labelledby="ranks-title">
    <h2 id="ranks-title">Ranks</h2>
    <table id="ranks" class="ranks" role="table" aria-labelledby="ranks-title">
      <thead role="rowgroup"><tr role="row"></tr></thead><tbody role="rowgroup"></tbody>
    </table>
  </section>
  <section id="sources" aria-labelledby="sources-title" hidden>
    <h2 id="sources-title">Store sources</h2>
    <div class="panels" id="source-panels"></div>
  </section>
  <section id="lmcache" aria-labelledby="lmcache-title" hidden>
    <h2 id="lmcache-title">LMCache</h2>
    <div class="charts" id="lmcache-chart"></div>
    <div class="panels" id="lmcache-panels"></div>
  </section>
  <section aria-labelledby="settings-title">
    <details>
      <summary><h2 id="settings-title">Settings</h2></summary>
      <div class="list" id="settings"></div>
    </details>
  </section>
</main>
<footer>
  <nav aria-label="The same for machines">
    <a href="metrics">/metrics</a> <a href="api/status">/api/status</a>
    <a href="health/ready">/health/ready</a> <a href="health/live">/health/live</a>
  </nav>
</footer>
`;

const SCRIPT_PARTS = [
  PAGE_FORMAT_SCRIPT,
  PAGE_HISTORY_SCRIPT,
  PAGE_VIEW_SCRIPT,
  PAGE_CHARTS_SCRIPT,
  PAGE_FLOW_SCRIPT,
  PAGE_RANKS_SCRIPT,
  PAGE_PANELS_SCRIPT,
  PAGE_LMCACHE_SCRIPT,
  PAGE_LIVE_SCRIPT,
];
const STYLE = PAGE_BASE_STYLE + PAGE_RANK_STYLE;

function buildPage(): StatusPage {
  const script = `'use strict';(() => {${SCRIPT_PARTS.join('')}})();`;
  const head =
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">' +
    '<meta name="color-scheme" content="light dark"><title>kvrelay</title>' +
    `<link rel="icon" href="${ICON}"><style>${STYLE}</style>`;
  return {
    html:
      `<!doctype html>\n<html lang="en"><head>${head}</head>\n` +
      `<body>${BODY}<script>${script}</script></body></html>\n`,
    contentSecurityPolicy: [
      "default-src 'none'",
      `script-src '${sourceHash(script)}'`,
      `style-src '${sourceHash(STYLE)}'`,
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}

function sourceHash(text: string): string {
  return `sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}`;
}

export const STATUS_PAGE: StatusPage = buildPage();
