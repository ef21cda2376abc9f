// Lines of a log as elements, and the lines that an event of a live run brings: for the run page and the log page.

export const MAX_LINES = 10000;

const shared = document.createElement("template");

export function lineOf({ number, at, source, level, text }) {
  shared.innerHTML = '<div class="log-line"></div>';
  const line = shared.content.firstChild;
  if (level !== "info") line.classList.add(`log-${level}`);
  if (number) {
    line.id = `L${number}`;
    line.append(
      Object.assign(document.createElement("a"), { className: "log-number", href: `#L${number}`, textContent: number }),
    );
  }
  if (at) {
    line.append(Object.assign(document.createElement("time"), { dateTime: at, textContent: at.slice(11, 19) }));
    line.append(Object.assign(document.createElement("span"), { className: "log-source", textContent: source }));
  }
  line.append(Object.assign(document.createElement("span"), { className: "log-text", textContent: text }));
  return line;
}

export function linesOf(event) {
  if (event.kind === "logged")
    return event.lines.map((text) => ({ at: event.at, source: event.source, level: event.level, text }));
  if (event.kind === "phase_started")
    return [{ at: event.at, source: "runner", level: "info", text: `Phase ${event.phase.replaceAll("_", " ")}` }];
  return [];
}
