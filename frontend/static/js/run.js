// A run that is under way: its events come as a stream, or by polling where streams are cut.

const MAX_LINES = 10000;
const POLL_MS = 2000;
const REFRESH_MS = 700;
const FAILURES = 3;
const QUIET = new Set(["samples", "logged", "job_intended", "job_started", "job_ended"]);

const page = document.getElementById("run");
const log = document.getElementById("log");
const followButton = document.getElementById("follow");
const followNote = document.getElementById("follow-note");
const chart = document.getElementById("live-chart");
let following = true;
let after = Number(page.dataset.after);
let refreshTimer = 0;

function refreshLater() {
  if (refreshTimer) return;
  refreshTimer = setTimeout(() => {
    refreshTimer = 0;
    document.body.dispatchEvent(new Event("runchanged"));
  }, REFRESH_MS);
}

function lineOf(at, source, level, text) {
  const line = document.createElement("div");
  line.className = level === "info" ? "log-line" : `log-line log-${level}`;
  const time = document.createElement("time");
  time.dateTime = at;
  time.textContent = at.slice(11, 19);
  const from = document.createElement("span");
  from.className = "log-source";
  from.textContent = source;
  const words = document.createElement("span");
  words.className = "log-text";
  words.textContent = text;
  line.append(time, from, words);
  return line;
}

function linesOf(event) {
  if (event.kind === "logged") return event.lines.map((text) => lineOf(event.at, event.source, event.level, text));
  if (event.kind === "phase_started") return [lineOf(event.at, "runner", "info", `Phase ${event.phase.replaceAll("_", " ")}`)];
  return [];
}

function take(event) {
  if (event.seq <= after) return;
  after = event.seq;
  const lines = linesOf(event);
  if (lines.length) {
    log.append(...lines.slice(-MAX_LINES));
    while (log.childElementCount > MAX_LINES) log.firstElementChild.remove();
    if (following) log.scrollTop = log.scrollHeight;
  }
  chart.dispatchEvent(new CustomEvent("runevent", { detail: event }));
  if (!QUIET.has(event.kind)) refreshLater();
}

function follow(on) {
  following = on;
  followButton.hidden = followNote.hidden = on;
  if (on) log.scrollTop = log.scrollHeight;
}

function finish() {
  page.dataset.live = "no";
  document.body.dispatchEvent(new Event("runchanged"));
}

async function poll() {
  try {
    const response = await fetch(`${page.dataset.page}?after=${after}`, { credentials: "same-origin" });
    if (response.ok) {
      const { events, finished } = await response.json();
      events.forEach(take);
      if (finished) return finish();
    }
  } catch {
    // The server is away for a moment; the next poll goes on where this one stopped.
  }
  setTimeout(poll, POLL_MS);
}

function stream() {
  let failures = 0;
  const source = new EventSource(`${page.dataset.events}?after=${after}`);
  source.onopen = () => (failures = 0);
  source.onmessage = (message) => take(JSON.parse(message.data));
  source.addEventListener("end", () => {
    source.close();
    finish();
  });
  source.onerror = () => {
    failures += 1;
    if (source.readyState === EventSource.CLOSED || failures >= FAILURES) {
      source.close();
      poll();
    }
  };
}

log.addEventListener("scroll", () => {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
  if (page.dataset.live === "yes" && atEnd !== following) follow(atEnd);
});
followButton.addEventListener("click", () => follow(true));

document.getElementById("next-failure").addEventListener("click", () => {
  const problems = [...log.querySelectorAll(".log-error, .log-warning")];
  const top = log.scrollTop + 1;
  const next = problems.find((line) => line.offsetTop > top) ?? problems[0];
  if (!next) return;
  log.scrollTop = next.offsetTop;
  log.scrollIntoView({ block: "nearest" });
});

const failure = page.dataset.live === "yes" ? null : log.querySelector(".log-error");
log.scrollTop = failure ? Math.max(0, failure.offsetTop - log.clientHeight / 2) : log.scrollHeight;
if (page.dataset.live === "yes") stream();
