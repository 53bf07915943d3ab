/** The page's style, part 1 of 2: colours light and dark, header, notices, the pipeline. */
export const PAGE_BASE_STYLE: string = `
:root {
  color-scheme: light dark;
  --paper: #f4f6f4; --card: #ffffff; --ink: #17211e; --mute: #55635d; --line: #d8dfdb;
  --accent: #0a6b5e; --good: #17703a; --warn: #855600; --bad: #b3261e;
  --warn-ground: #fdf3dc; --bad-ground: #fbe9e7; --grid: #e8edea;
  --line-1: #0a6b5e; --line-2: #b45309; --line-3: #6d3fc4; --line-4: #1769aa;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0e1412; --card: #161f1c; --ink: #e3ebe7; --mute: #9eaea7; --line: #2b3733;
    --accent: #58cbb4; --good: #5bd08e; --warn: #e5b85a; --bad: #ff8a80;
    --warn-ground: #2a2413; --bad-ground: #2f1b19; --grid: #222d29;
    --line-1: #58cbb4; --line-2: #f0a04b; --line-3: #b79bff; --line-4: #6db8ff;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto; padding: 0 1.25rem 2rem; max-width: 84rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif;
}
h1, h2, h3, h4, p, dl, dd, ul, ol, figure { margin: 0; padding: 0; }
h2 { font-size: 1rem; font-weight: 650; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
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
[data-tone="bad"] { color: var(--bad); font-weight: 600; }
[data-tone="wait"] { color: var(--mute); }

#lost {
  background: var(--bad-ground); border-left: 4px solid var(--bad); padding: .7rem .9rem;
}
#lost h2 { color: var(--bad); margin-bottom: .2rem; }
.notices { list-style: none; display: grid; gap: .6rem; }
.notices li {
  background: var(--warn-ground); border-left: 4px solid var(--warn); padding: .7rem .9rem;
}
.notices .what { display: flex; flex-wrap: wrap; gap: 0 .7rem; align-items: baseline; }
.notices code { font: 600 .95rem var(--mono); color: var(--warn); overflow-wrap: anywhere; }
.notices .remedy { margin-top: .35rem; }
.notices .remedy b { font-weight: 650; margin-right: .5rem; }
.notices .remedy b::after { content: ":"; }

.flow { list-style: none; display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); }
.flow li {
  position: relative; background: var(--card); border: 1px solid var(--line); border-right: 0;
  padding: .8rem .9rem .7rem 1.3rem; display: flex; flex-direction: column;
}
.flow li:first-child { border-radius: 6px 0 0 6px; }
.flow li:last-child { border-right: 1px solid var(--line); border-radius: 0 6px 6px 0; }
.flow li + li::before {
  content: ""; position: absolute; left: -.46rem; top: 1.05rem; width: .85rem; height: .85rem;
  background: var(--card); border: solid var(--accent); border-width: 2px 2px 0 0; rotate: 45deg;
}
.flow h3 { font-size: .85rem; font-weight: 600; color: var(--mute); }
.flow .number {
  font: 600 clamp(1.05rem, 1.75vw, 1.45rem)/1.4 var(--mono); letter-spacing: -.04em;
}
.flow :is(.unit, .note, .queue) { font-size: .85rem; font-variant-numeric: tabular-nums; }
.flow .note:is([data-tone=""], :not([data-tone])) { color: var(--mute); }
.flow .queue { color: var(--mute); margin-bottom: .5rem; }
.flow .queue.waiting { color: var(--warn); font-weight: 600; }
.flow .curve { width: 100%; height: 1.8rem; margin-top: auto; }

.curve { display: block; border-bottom: 1px solid var(--line); overflow: visible; }
polyline {
  fill: none; stroke: var(--line-1); stroke-width: 1.5; vector-effect: non-scaling-stroke;
  stroke-linejoin: round;
}
.line-2 { stroke: var(--line-2); stroke-dasharray: 6 3; }
.line-3 { stroke: var(--line-3); stroke-dasharray: 2 3; }
.line-4 { stroke: var(--line-4); stroke-dasharray: 9 3 2 3; }

summary { cursor: pointer; }
summary h2 { display: inline; }
details[open] summary { margin-bottom: .6rem; }
footer {
  margin-top: 2rem; padding-top: .9rem; border-top: 1px solid var(--line); font-size: .875rem;
}
footer nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }

@media (max-width: 60rem) {
  body { padding: 0 .9rem 2rem; }
  .flow { grid-template-columns: 1fr; }
  .flow li, .flow li:first-child, .flow li:last-child {
    border: 1px solid var(--line); border-bottom: 0; border-radius: 0; padding: .6rem .9rem;
    display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 1rem;
  }
  .flow li:last-child { border-bottom: 1px solid var(--line); }
  .flow li + li::before { left: 1rem; top: -.45rem; width: .7rem; height: .7rem; rotate: 135deg; }
  .flow h3 { color: var(--ink); align-self: center; }
  .flow .number { text-align: right; font-size: 1.2rem; }
  .flow .note { text-align: right; }
  .flow .queue { margin-bottom: 0; }
  .flow .curve { width: 8rem; height: 1.2rem; margin: 0; justify-self: end; }
  .facts { margin-left: 0; width: 100%; }
}
`;
