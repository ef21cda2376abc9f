// The events of a run that is under way: as a stream, or by polling where streams are cut.

const POLL_MS = 2000;
const FAILURES = 3;
const REFRESH_MS = 700;
const QUIET = new Set(["samples", "logged", "job_intended", "job_started", "job_ended"]);

// Calls `refresh` a moment after an event that changes what the server renders; several events make one call.
export function refresher(refresh) {
  let timer = 0;
  return (event) => {
    if (timer || QUIET.has(event.kind)) return;
    timer = setTimeout(() => {
      timer = 0;
      refresh();
    }, REFRESH_MS);
  };
}

// `take` gets every event once, in order; `finish` is called when there will be no more.
export function follow({ events, page, after, take, finish }) {
  let last = after;

  function next(event) {
    if (event.seq <= last) return;
    last = event.seq;
    take(event);
  }

  async function poll() {
    try {
      const response = await fetch(`${page}?after=${last}`, { credentials: "same-origin" });
      if (response.ok) {
        const answer = await response.json();
        answer.events.forEach(next);
        if (answer.finished) return finish();
      }
    } catch {
      // The server is away for a moment; the next poll goes on where this one stopped.
    }
    setTimeout(poll, POLL_MS);
  }

  let failures = 0;
  const source = new EventSource(`${events}?after=${last}`);
  source.onopen = () => (failures = 0);
  source.onmessage = (message) => next(JSON.parse(message.data));
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
