/** The page's style: light and dark, from a phone's width up. */
export const PAGE_STYLE: string = `
:root {
  color-scheme: light dark;
  --paper: #f4f6f4; --card: #ffffff; --ink: #17211e; --mute: #586661; --line: #d8dfdb;
  --accent: #0a6b5e; --good: #17703a; --warn: #8a5a00; --bad: #b3261e;
  --warn-ground: #fdf3dc; --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0e1412; --card: #161f1c; --ink: #e3ebe7; --mute: #98a8a1; --line: #2b3733;
    --accent: #58cbb4; --good: #5bd08e; --warn: #e5b85a; --bad: #ff8a80; --warn-ground: #2a2413;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto; padding: 0 1.25rem 2rem; max-width: 84rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif;
}
h1, h2, h3, p, dl, dd, ul, ol { margin: 0; padding: 0; }
h2 { font-size: 1rem; font-weight: 650; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem; }
main > section { margin-top: 1.75rem; }
main > section > h2 { margin-bottom: .6rem; }

.top {
  display: flex; flex-wrap: wrap; align-items: center; gap: .6rem 1.1rem; padding: 1.1rem 0;
  border-bottom: 1px solid var(--line);
}
h1 { font: 700 1.35rem/1 var(--mono); letter-spacing: -.03em; }
.state { display: flex; align-items: center; gap: .45rem; font-weight: 600; }
.state::before {
  content: ""; width: .65rem; height: .65rem; border-radius: 50%; background: currentColor;
}
.facts { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; margin-left: auto; }
.facts dt { color: var(--mute); font-size: .75rem; }
.facts dd { font-variant-numeric: tabular-nums; }
[data-tone="good"] { color: var(--good); }
[data-tone="warn"] { color: var(--warn); }
[data-tone="bad"] { color: var(--bad); }
[data-tone="wait"] { color: var(--mute); }

.notices { list-style: none; display: grid; gap: .6rem; }
.notices li {
  background: var(--warn-ground); border-left: 4px solid var(--warn); padding: .6rem .9rem;
}
.notices code { font: 600 .9rem var(--mono); color: var(--warn); margin-right: .7rem; }
.notices .what span, .notices .remedy { color: var(--mute); }

.flow { list-style: none; display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); }
.flow li {
  position: relative; min-height: 9.2rem; background: var(--card); border: 1px solid var(--line);
  border-right: 0; padding: .8rem .9rem 2.6rem 1.3rem; color: var(--ink);
}
.flow li:first-child { border-radius: 6px 0 0 6px; }
.flow li:last-child { border-right: 1px solid var(--line); border-radius: 0 6px 6px 0; }
.flow li + li::before {
  content: ""; position: absolute; left: -.46rem; top: 1.05rem; width: .85rem; height: .85rem;
  background: var(--card); border: solid var(--accent); border-width: 2px 2px 0 0; rotate: 45deg;
}
.flow h3 { font-size: .85rem; font-weight: 600; color: var(--mute); }
.flow .number {
  font: 600 clamp(1.05rem, 1.75vw, 1.45rem)/1.3 var(--mono); letter-spacing: -.04em;
}
.flow [data-tone="less"] .number { font-weight: 400; color: var(--mute); }
.flow .unit { font-size: .85rem; }
.flow .note { font-size: .85rem; color: var(--mute); font-variant-numeric: tabular-nums; }
.flow [data-tone="good"] .unit { color: var(--good); }
.flow [data-tone="bad"] .unit { color: var(--bad); font-weight: 600; }
.flow svg {
  position: absolute; left: 1.3rem; bottom: .6rem; width: calc(100% - 2.2rem); height: 1.7rem;
  border-bottom: 1px solid var(--line);
}
.flow polyline {
  fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke;
}

.panels { columns: 1; column-gap: .9rem; }
.panels.one { columns: 21rem auto; }
.panels.pair { columns: 30rem auto; }
.panel {
  position: relative; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  overflow-x: auto; break-inside: avoid; margin-bottom: .9rem;
}
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; font-weight: 600; padding: .7rem .9rem .35rem; }
th, td { text-align: left; padding: .3rem .9rem; vertical-align: baseline; }
th { font-weight: 400; color: var(--mute); white-space: nowrap; }
thead th { font-size: .8rem; }
.panels.one thead { position: absolute; clip-path: inset(50%); }
td { font-family: var(--mono); font-size: .82rem; overflow-wrap: anywhere; }
tbody tr { border-top: 1px solid var(--line); }
tbody th { position: sticky; left: 0; background: var(--card); }
.panels.one td { text-align: right; }
.pair, .many, .list { --label: 12rem; }
:is(.pair, .many, .list) table {
  table-layout: fixed; min-width: calc(var(--label) + var(--columns, 1) * 7rem);
}
:is(.pair, .many, .list) :is(thead td, tbody th) {
  width: var(--label); white-space: normal; overflow-wrap: anywhere;
}
.list caption { position: absolute; clip-path: inset(50%); }

summary { cursor: pointer; }
summary h2 { display: inline; }
details[open] summary { margin-bottom: .6rem; }
footer {
  margin-top: 2rem; padding-top: .9rem; border-top: 1px solid var(--line); font-size: .875rem;
}
footer nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
.stale main { opacity: .65; }

@media (max-width: 60rem) {
  .flow { grid-template-columns: 1fr; }
  .flow li, .flow li:first-child, .flow li:last-child {
    min-height: 0; border: 1px solid var(--line); border-bottom: 0; border-radius: 0;
    padding: .7rem .9rem; display: grid; grid-template-columns: 1fr auto; gap: 0 1rem;
  }
  .flow li:last-child { border-bottom: 1px solid var(--line); }
  .flow li + li::before { left: 1rem; top: -.5rem; width: .7rem; height: .7rem; rotate: 135deg; }
  .flow .number { grid-area: 1 / 2; text-align: right; font-size: 1.45rem; }
  .flow .unit { grid-area: 2 / 2; text-align: right; }
  .flow .note { grid-area: 2 / 1; }
  .flow svg { position: static; grid-column: 1 / 3; width: 100%; margin-top: .4rem; }
  .pair, .many, .list { --label: 8.5rem; }
  .facts { margin-left: 0; width: 100%; }
}
`;
