// The log page: at most 10,000 lines stand in it, the others come by their numbers as it is scrolled.

import { follow as followRun, refresher } from "./live_events.js";
import { lineOf, linesOf, MAX_LINES } from "./log_lines.js";

const STEP = 500;
const BEFORE_IT = 60;
const NEAR_PX = 600;

const log = document.getElementById("log");
const followButton = document.getElementById("follow");
const followNote = document.getElementById("follow-note");
const totalText = document.getElementById("log-total");
const problems = JSON.parse(document.getElementById("log-problems").textContent);
const live = log.dataset.live === "yes";
let total = Number(log.dataset.total);
let following = live;
let busy = false;
const refreshAfter = refresher(() => document.body.dispatchEvent(new Event("runchanged")));

const numberOf = (line) => (line ? Number(line.id.slice(1)) : 0);
const first = () => numberOf(log.querySelector(".log-line"));
const last = () => numberOf(log.lastElementChild?.matches(".log-line") ? log.lastElementChild : null);
const inPage = (number) => document.getElementById(`L${number}`);

async function fetchLines(after, limit) {
  const address = new URL(log.dataset.lines, location.href);
  address.searchParams.set("after", after);
  address.searchParams.set("limit", limit);
  const response = await fetch(address, { credentials: "same-origin" });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const { lines } = await response.json();
  return lines.map(([number, at, source, level, text]) => lineOf({ number, at, source, level, text }));
}

function say(problem) {
  followNote.hidden = false;
  followNote.textContent = `More lines could not be loaded: ${problem.message}.`;
}

// One request at a time; what is asked for meanwhile is asked for again by the next scroll.
async function alone(work) {
  if (busy) return;
  busy = true;
  try {
    await work();
  } catch (problem) {
    say(problem);
  } finally {
    busy = false;
  }
}

function dropFirst() {
  const over = log.querySelectorAll(".log-line").length - MAX_LINES;
  if (over <= 0) return;
  const before = log.scrollHeight;
  for (let n = 0; n < over; n += 1) log.firstElementChild.remove();
  log.scrollTop -= before - log.scrollHeight;
}

function dropLast() {
  for (let over = log.querySelectorAll(".log-line").length - MAX_LINES; over > 0; over -= 1)
    log.lastElementChild.remove();
}

const loadLater = () =>
  alone(async () => {
    if (last() >= total) return;
    log.append(...(await fetchLines(last(), STEP)));
    dropFirst();
  });

const loadEarlier = () =>
  alone(async () => {
    const from = first();
    if (from <= 1) return;
    const start = Math.max(0, from - 1 - STEP);
    const lines = await fetchLines(start, from - 1 - start);
    const before = log.scrollHeight;
    log.prepend(...lines);
    log.scrollTop += log.scrollHeight - before;
    dropLast();
  });

function mark(number) {
  log.querySelector(".is-here")?.classList.remove("is-here");
  const line = inPage(number);
  line?.classList.add("is-here");
  line?.scrollIntoView({ block: "center" });
}

async function show(number) {
  const wanted = Math.max(1, Math.min(number, total));
  setFollowing(false);
  if (!inPage(wanted)) {
    await alone(async () => {
      log.replaceChildren(...(await fetchLines(Math.max(0, wanted - BEFORE_IT - 1), STEP)));
    });
  }
  mark(wanted);
  return wanted;
}

async function showEnd() {
  if (last() < total)
    await alone(async () => log.replaceChildren(...(await fetchLines(Math.max(0, total - STEP), STEP))));
  log.scrollTop = log.scrollHeight;
}

function setFollowing(on) {
  following = on && live;
  if (live) followButton.hidden = followNote.hidden = following;
  followNote.textContent = "Following stopped";
}

function hashLine() {
  const found = /^#L(\d+)$/.exec(location.hash);
  return found ? Number(found[1]) : 0;
}

function go(number) {
  history.replaceState(history.state, "", `#L${number}`);
  show(number);
}

let problemAt = 0;

function nextProblem() {
  if (!problems.length) {
    followNote.hidden = false;
    followNote.textContent = "No warning or error so far.";
    return;
  }
  const from = problemAt || hashLine();
  problemAt = problems.find((number) => number > from) ?? problems[0];
  go(problemAt);
}

function take(event) {
  const lines = linesOf(event);
  if (lines.length) {
    const atEnd = last() === total;
    const numbered = lines.map((line, index) => ({ ...line, number: total + 1 + index }));
    if (lines[0].level !== "info") problems.push(total + 1);
    total += lines.length;
    totalText.textContent = total.toLocaleString("en-US");
    if (atEnd && !busy) {
      log.querySelector(".log-nothing")?.remove();
      log.append(...numbered.slice(-MAX_LINES).map(lineOf));
      dropFirst();
    }
    if (following) log.scrollTop = log.scrollHeight;
  }
  refreshAfter(event);
}

log.addEventListener("scroll", () => {
  const below = log.scrollHeight - log.scrollTop - log.clientHeight;
  if (live && (below < 24 && last() === total) !== following) setFollowing(below < 24 && last() === total);
  if (below < NEAR_PX) loadLater();
  if (log.scrollTop < NEAR_PX) loadEarlier();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line], a.log-number");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(Number(link.dataset.line ?? link.textContent));
});
addEventListener("hashchange", () => hashLine() && show(hashLine()));
document.getElementById("next-failure")?.addEventListener("click", nextProblem);
followButton.addEventListener("click", () => {
  setFollowing(true);
  showEnd();
});

const asked = hashLine() || Number(new URLSearchParams(location.search).get("line"));
if (asked) show(asked);
else if (live) showEnd();
else if (log.dataset.open) mark(Number(log.dataset.open));

if (live) {
  followRun({
    events: log.dataset.events,
    page: log.dataset.page,
    after: Number(log.dataset.after),
    take,
    finish: () => {
      setFollowing(false);
      followButton.hidden = true;
      document.body.dispatchEvent(new Event("runchanged"));
    },
  });
}
