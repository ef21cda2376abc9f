// The run page while the run is under way: its log, its chart and what the server renders again.

import { follow as followRun, refresher } from "./live_events.js";
import { lineOf, linesOf, MAX_LINES } from "./log_lines.js";

const page = document.getElementById("run");
const log = document.getElementById("log");
const followButton = document.getElementById("follow");
const followNote = document.getElementById("follow-note");
const charts = page.querySelectorAll("#timeline, #live-chart");
let following = true;
const refreshAfter = refresher(() => document.body.dispatchEvent(new Event("runchanged")));

function take(event) {
  const lines = linesOf(event).map(lineOf);
  if (lines.length) {
    log.append(...lines.slice(-MAX_LINES));
    while (log.childElementCount > MAX_LINES) log.firstElementChild.remove();
    if (following) log.scrollTop = log.scrollHeight;
  }
  for (const chart of charts) chart.dispatchEvent(new CustomEvent("runevent", { detail: event }));
  refreshAfter(event);
}

function follow(on) {
  following = on;
  followButton.hidden = followNote.hidden = on;
  followNote.textContent = "Following stopped";
  if (on) log.scrollTop = log.scrollHeight;
}

function finish() {
  page.dataset.live = "no";
  document.body.dispatchEvent(new Event("runchanged"));
}

log.addEventListener("scroll", () => {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
  if (page.dataset.live === "yes" && atEnd !== following) follow(atEnd);
});
followButton.addEventListener("click", () => follow(true));

document.getElementById("next-failure").addEventListener("click", () => {
  const problems = [...log.querySelectorAll(".log-error, .log-warning")];
  if (!problems.length) {
    followNote.hidden = false;
    followNote.textContent = "No warning or error in these lines.";
    return;
  }
  const top = log.scrollTop + 1;
  const next = problems.find((line) => line.offsetTop > top) ?? problems[0];
  log.scrollTop = next.offsetTop;
  log.scrollIntoView({ block: "nearest" });
});

const failure = page.dataset.live === "yes" ? null : log.querySelector(".log-error");
log.scrollTop = failure ? Math.max(0, failure.offsetTop - log.clientHeight / 2) : log.scrollHeight;
if (page.dataset.live === "yes") {
  followRun({ events: page.dataset.events, page: page.dataset.page, after: Number(page.dataset.after), take, finish });
}
