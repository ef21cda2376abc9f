// Starts every chart of the page when it comes into view, and the selects that change what one shows.

import * as ab from "./ab.js";
import { Figure } from "./base.js";
import * as bisection from "./bisection.js";
import * as curve from "./curve.js";
import * as efficiency from "./efficiency.js";
import * as history from "./history.js";
import * as live from "./live.js";
import * as percentiles from "./percentiles.js";
import * as published from "./published.js";
import * as scaling from "./scaling.js";
import * as search from "./search.js";
import * as sweep from "./sweep.js";
import * as timeline from "./timeline.js";
import * as tuning from "./tuning.js";

const MODULES = {
  ab,
  bisection,
  curve,
  efficiency,
  history,
  live,
  percentiles,
  published,
  scaling,
  search,
  sweep,
  timeline,
  tuning,
};
const figures = new Map();
const FEW = 6; // so many are drawn at once; of more, each is when it comes into sight

const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      figures.get(target).start();
    }
  },
  { rootMargin: "200px" },
);

for (const element of document.querySelectorAll("figure[data-chart]")) {
  figures.set(element, new Figure(element, MODULES[element.dataset.chart]));
}

// Paper shows every chart: whoever prints waits for those that were never in sight.
document.addEventListener("printsoon", (event) => {
  for (const [element, figure] of figures) {
    if (figure.json) continue;
    seen.unobserve(element);
    event.detail.push(figure.start());
  }
});

// A live page that asked for its newest part says so: charts that are shown and have an address read anew.
document.body.addEventListener("charts-changed", () => {
  for (const [element, figure] of figures) if (element.dataset.url && figure.json) figure.start();
});

function choose(select) {
  const element = document.getElementById(select.dataset.chartSelect);
  const address = new URL(element.dataset.url, location.href);
  address.searchParams.set(select.dataset.param, select.value);
  element.dataset.url = address.pathname + address.search;
  return figures.get(element);
}

for (const select of document.querySelectorAll("select[data-chart-select]")) {
  const asked = new URLSearchParams(location.search).get(select.dataset.param);
  if (asked && [...select.options].some((option) => option.value === asked)) {
    select.value = asked;
    choose(select);
  }
  select.addEventListener("change", () => {
    const here = new URL(location.href);
    here.searchParams.set(select.dataset.param, select.value);
    window.history.replaceState(window.history.state, "", here);
    choose(select).start();
  });
}

for (const [element, figure] of figures) {
  if (figures.size > FEW || !element.offsetParent) seen.observe(element);
  else figure.start();
}
