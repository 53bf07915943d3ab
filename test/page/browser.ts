/**
 * The browser under test: one process a test file, one page a test. What runs inside the page is
 * given as text: it is the browser's program, and the types here are Node's.
 *
 * Checks   every page at its close: no exception, no console error, no breach of its policy.
 */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { StatusSnapshot } from '../../src/status/status-source.ts';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const DESKTOP = { viewport: { width: 1280, height: 900 } } as const;
export const PHONE = { viewport: { width: 360, height: 740 } } as const;

/** Before the page's own script: what is shown is compared with what the stream has brought. */
const WATCH = `
  window.snapshots = [];
  window.violations = [];
  window.longTasks = [];
  document.addEventListener('securitypolicyviolation', (event) => {
    window.violations.push(event.violatedDirective + ' ' + event.blockedURI);
  });
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longTasks.push(Math.round(task.duration));
  }).observe({ type: 'longtask', buffered: true });
  const Source = window.EventSource;
  window.EventSource = class extends Source {
    set onmessage(listener) {
      super.onmessage = (message) => {
        listener(message);
        window.snapshots.push(JSON.parse(message.data));
      };
    }
  };
`;

export interface OpenOptions extends BrowserContextOptions {
  /** Errors that the test brings about itself. */
  readonly allowedErrors?: RegExp;
}

export interface Opener {
  open(url: string, options?: OpenOptions): Promise<Page>;
}

/** Call once at the top of a test file. */
export function useBrowser(): Opener {
  let browser: Browser;
  const checks: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const executablePath = process.env.KVRELAY_CHROMIUM;
    if (!executablePath) throw new Error('Start it with `npm run test:page`');
    browser = await chromium.launch({ executablePath, args: ARGS });
  });
  afterEach(async () => {
    for (const check of checks.splice(0)) await check();
  });
  afterAll(async () => {
    await browser?.close();
  });

  return {
    async open(url, { allowedErrors, ...options } = {}) {
      const context = await browser.newContext({ ...DESKTOP, ...options });
      const page = await context.newPage();
      const errors: string[] = [];
      page.setDefaultTimeout(15_000);
      page.on('pageerror', (error) => errors.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
      });
      await page.addInitScript(WATCH);
      await page.goto(url);
      checks.push(async () => {
        const violations = await page.evaluate<string[]>('window.violations');
        await context.close();
        const unexpected = errors.filter((error) => allowedErrors?.test(error) !== true);
        expect([...unexpected, ...violations]).toEqual([]);
      });
      await nextSnapshot(page);
      return page;
    },
  };
}

/** What the page has just shown; waits for the next one. */
export async function nextSnapshot(page: Page): Promise<StatusSnapshot> {
  const seen = await page.evaluate<number>('window.snapshots.length');
  await pageReaches(page, `window.snapshots.length > ${seen}`);
  return await page.evaluate<StatusSnapshot>('window.snapshots.at(-1)');
}

/**
 * Waits until `condition`, a JavaScript expression, holds in the page. Asked from here, as the page's
 * policy lets nothing inside it make a program out of a text.
 */
export async function pageReaches(
  page: Page,
  condition: string,
  timeoutMs = 15_000,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await page.evaluate<boolean>(`Boolean(${condition})`))) {
    if (performance.now() > deadlineMs) throw new Error(`The page does not reach ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const scrollsSideways = 'document.documentElement.scrollWidth > window.innerWidth';
