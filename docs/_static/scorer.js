/* Order of search results: guides before objects of the API, notebooks and the project's own pages. */
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    if (/^dev\/|\/notebooks\//.test(docname)) return score - 4;
    if (/^reference\/(api\/|cli)/.test(docname)) return score - 3;
    if (/^(get-started|benchmarks)\//.test(docname)) return score + 0.4;
    return /^how-to\//.test(docname) ? score + 0.2 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 1,
  objPrio: { 0: 0, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
