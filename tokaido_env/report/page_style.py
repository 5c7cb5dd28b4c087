"""The style sheet of the report page: light and dark, a desk and a phone, no script."""

CSS = """
:root { color-scheme: light dark; --ink: #1b1e24; --soft: #5b616c; --faint: #c9ccd3;
  --paper: #ffffff; --stripe: #f4f5f7; --link: #0b57a4; --won: 86 180 233; --lost: 230 159 0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaee; --soft: #a4abb8; --faint: #434955; --paper: #14161a;
    --stripe: #1d2026; --link: #8ab8f0; --won: 20 98 158; --lost: 140 84 0; }
}
* { box-sizing: border-box; }
body { max-width: 75rem; margin: 0 auto; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; }
p { color: var(--soft); font-size: 0.9rem; margin: 0.3rem 0 0.6rem; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; }
dl { display: flex; flex-wrap: wrap; gap: 0.2rem 1.5rem; margin: 0.5rem 0; }
dl div { display: flex; gap: 0.4rem; min-width: 0; }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
pre { margin: 0.5rem 0; padding: 0.6rem; background: var(--stripe); border-radius: 0.4rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; font-weight: inherit; }
thead th { border-bottom: 2px solid var(--faint); font-weight: 600; vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--stripe); }
i { display: inline-block; width: 0.7rem; height: 0.7rem; border-radius: 50%; flex: none; }
.agent { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.agent i { margin-right: 0.5rem; }
.agent small { color: var(--soft); }
.standings { width: 100%; }
.standings .score { font-weight: 600; }
figure { margin: 1rem 0; padding: 0.5rem; border: 1px solid var(--faint);
  border-radius: 0.5rem; }
figure svg { display: block; width: 100%; min-width: 40rem; height: auto; }
summary { cursor: pointer; padding: 0.3rem 0; overflow-wrap: anywhere; }
.matrix { overflow: auto; max-height: 90vh; }
.matrix table { border-collapse: separate; border-spacing: 2px; }
.matrix th { position: sticky; background: var(--paper); padding: 0.2rem 0.4rem; border: 0; }
.matrix thead th { top: 0; z-index: 1; text-align: center; }
.matrix tbody th { left: 0; text-align: left; }
.matrix thead th:first-child { left: 0; z-index: 2; text-align: left; }
.matrix tbody th span { display: inline-block; max-width: 14rem; overflow: hidden;
  text-overflow: ellipsis; vertical-align: bottom; }
.matrix tbody tr { background: none; }
.matrix td { padding: 0; text-align: center; min-width: 2.3rem; border-radius: 3px; }
.matrix td a { display: block; padding: 0.25rem 0.3rem; color: inherit; text-decoration: none; }
.matrix td a:hover { text-decoration: underline; }
.matrix td small { display: block; opacity: 0.85; }
.matrix td.none { background: var(--stripe); }
.won { background: rgb(var(--won) / var(--much)); }
.lost { background: rgb(var(--lost) / var(--much)); }
.match { border-top: 1px solid var(--faint); }
.match > summary b { font-variant-numeric: tabular-nums; }
.match > div { padding: 0 0 0.8rem 1rem; scroll-margin-top: 3rem; }
.match > div:target { box-shadow: -3px 0 0 var(--link); }
.match th:first-child, .match td:first-child { text-align: left; }
.match thead th { white-space: normal; overflow-wrap: anywhere; }
.match ul { margin: 0.5rem 0; padding-left: 1.2rem; }
@media (max-width: 45rem) {
  body { padding: 0.7rem; }
  th, td { padding: 0.3rem; }
  .standings, .standings tbody { display: block; }
  .standings thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .standings tr { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: 0.4rem 0.5rem;
    border-top: 1px solid var(--faint); }
  .standings td, .standings th { padding: 0; }
  .standings td[data-name]::before { content: attr(data-name) " "; color: var(--soft);
    font-weight: 400; }
  .standings td { font-size: 0.9rem; }
  .standings .rank, .standings .score, .standings .elo, .standings .interval { font-size: 1rem; }
  .standings .interval { margin-left: -0.7rem; }
  .standings td.interval::before { content: "("; color: inherit; }
  .standings td.interval::after { content: ")"; }
  .standings .rank { min-width: 1.5rem; font-weight: 600; }
  .standings .agent { flex: 1 1 calc(100% - 3rem); min-width: 0; font-weight: 600; }
  .matrix tbody th { font-size: 0.72rem; line-height: 1.2; }
  .matrix tbody th span { width: 7.7rem; white-space: normal; overflow-wrap: anywhere; }
  .match > div { padding-left: 0.5rem; }
  .match table { table-layout: fixed; width: 100%; font-size: 0.9rem; }
  .match th, .match td { white-space: normal; }
}
@media print { .matrix { max-height: none; } }
"""
