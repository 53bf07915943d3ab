/** The page's style, part 2 of 2: ranks, their charts and tables. */
export const PAGE_RANK_STYLE: string = `
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; padding: .3rem .9rem; vertical-align: baseline; }
th { font-weight: 400; color: var(--mute); }

.ranks { background: var(--card); border: 1px solid var(--line); }
.ranks > thead th { font-size: .8rem; white-space: nowrap; }
.ranks > tbody > tr { border-top: 1px solid var(--line); }
.rank > :is(th, td) { padding: .45rem .9rem; vertical-align: middle; white-space: nowrap; }
.rank.degraded > th { box-shadow: inset 4px 0 var(--warn); }
.rank .value { font-family: var(--mono); font-size: .85rem; }
.rank .second { display: block; font-size: .78rem; color: var(--mute); white-space: normal; }
.rank.degraded > td:nth-child(2) .second { color: var(--warn); font-family: var(--mono); }
.rank .second:empty { display: none; }
.curved { display: flex; align-items: center; justify-content: space-between; gap: .6rem; }
.rank .curve { width: 5.5rem; height: 1.5rem; }
.toggle {
  font: inherit; font-weight: 600; color: var(--ink); background: none; border: 0; padding: .35rem 0;
  cursor: pointer; display: inline-flex; gap: .45rem; align-items: center; white-space: nowrap;
}
.toggle::before {
  content: ""; width: .45rem; height: .45rem; border: solid var(--accent);
  border-width: 0 2px 2px 0; rotate: -45deg;
}
.toggle[aria-expanded="true"]::before { rotate: 45deg; translate: 0 -.12rem; }
.more > td { padding: .2rem .9rem .9rem; background: var(--paper); }
.ranks > tbody > .more { border-top: 0; }

.charts { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .9rem; }
.chart, .panel { background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
.chart { padding: .7rem .9rem .6rem; margin-top: .9rem; display: flex; flex-direction: column; }
.chart figcaption { flex: 1; }
h4, caption { font-size: .875rem; font-weight: 600; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .3rem 0 .6rem; }
.legend li { display: inline-flex; align-items: center; gap: .4rem; font-size: .8rem; }
.legend svg { width: 1.4rem; height: .3rem; }
.legend svg polyline { stroke-width: 2; }
.legend span { color: var(--mute); }
.legend b { font: 600 .82rem var(--mono); }
.plot {
  position: relative; padding-left: 4rem;
}
.plot .curve {
  width: 100%; height: 7rem;
  background: repeating-linear-gradient(var(--grid) 0 1px, transparent 1px 25%);
}
.plot span, .axis { font-size: .75rem; color: var(--mute); font-variant-numeric: tabular-nums; }
.plot span { position: absolute; left: 0; width: 3.6rem; text-align: right; line-height: 1; }
.plot .highest { top: 0; }
.plot .lowest { bottom: 0; }
.axis { display: flex; justify-content: space-between; padding: .25rem 0 0 4rem; }

.panels { columns: 21rem auto; column-gap: .9rem; margin-top: .9rem; }
.panel { break-inside: avoid; margin-bottom: .9rem; }
.list .panel { margin-bottom: 0; }
caption { text-align: left; padding: .7rem .9rem .35rem; }
.panel thead th { font-size: .75rem; padding: 0 .9rem .2rem; text-align: right; }
.panel td { font-family: var(--mono); font-size: .82rem; overflow-wrap: anywhere; text-align: right; }
.panel.single thead { position: absolute; clip-path: inset(50%); }
.panel tbody tr { border-top: 1px solid var(--line); }
.panel tbody th { overflow-wrap: anywhere; }
.list :is(td, thead th) { text-align: left; }
.list table { table-layout: fixed; }
.list :is(caption, .single thead) { position: absolute; clip-path: inset(50%); }
.list tbody tr:first-child { border-top: 0; }

@media (max-width: 68rem) {
  .charts { grid-template-columns: 1fr; gap: 0; }
  .ranks, .ranks > tbody, .rank, .more, .more > td { display: block; }
  .ranks > thead {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  }
  .rank {
    display: grid; grid-template-columns: repeat(auto-fill, minmax(6.6rem, 1fr)); padding: .3rem 0;
  }
  .rank > :is(th, td) { padding: .3rem .5rem .3rem .9rem; white-space: normal; }
  .rank > th { grid-column: 1 / -1; }
  .rank > td::before {
    content: attr(data-label); display: block; font-size: .75rem; color: var(--mute);
  }
  .rank .value { overflow-wrap: anywhere; }
  .curved { display: block; }
  .rank .curve { margin-top: .2rem; width: 100%; max-width: 12rem; height: 1.2rem; }
  .more > td { padding: .2rem .6rem .6rem; }
}
`;
