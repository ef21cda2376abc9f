// Keys: one letter does what a visible control does. Never while a field or a dialog has the focus; can be switched off.

const GO_TO = { o: "", r: "runs/", e: "experiments/", t: "trends/", a: "alerts/", h: "hosts/", q: "queue/" };
const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog[open]";
const STORED = "keys";

let pending = "";

function areOn() {
  try {
    return localStorage.getItem(STORED) !== "off";
  } catch {
    return true;
  }
}

function switchKeys(on) {
  try {
    localStorage.setItem(STORED, on ? "on" : "off");
  } catch {
    // Stays on: this browser keeps nothing.
  }
}

// j and k go through the rows that lead somewhere, and the runs of a heat table, in the order of the page.
const openable = () => [...document.querySelectorAll("main :is(tr, li) a.cell-main, main a.heat-cell")];

function step(by) {
  const all = openable();
  if (!all.length) return;
  const exact = all.indexOf(document.activeElement);
  const row = document.activeElement?.closest("main :is(tr, li)");
  const now = exact >= 0 ? exact : all.findIndex((link) => row?.contains(link));
  const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function tick() {
  const box = document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]");
  box?.click();
  return Boolean(box);
}

function press(key) {
  const control = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!control || control.disabled) return;
  const question = control.dataset.keyConfirm;
  if (question && !confirm(question)) return;
  control.click();
  if (control.tagName === "SUMMARY")
    (control.parentElement.querySelector("input:not([type=hidden])") ?? control).focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.(FIELDS) || !areOn()) return;
  const before = pending;
  pending = event.key;
  if (before === "g" && event.key in GO_TO) {
    pending = "";
    const home = document.querySelector("a.brand");
    if (home) location.href = home.href + GO_TO[event.key];
  } else if (event.key === "/") {
    const search = [...document.querySelectorAll("[data-search]")].find((field) => field.offsetParent);
    search?.focus();
    search?.select();
    event.preventDefault();
  } else if (event.key === "?") {
    document.getElementById("shortcuts")?.showModal();
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  } else if (event.key === "x") {
    tick();
  } else {
    press(event.key);
  }
});

const choice = document.getElementById("keys-on");
if (choice) {
  choice.checked = areOn();
  choice.addEventListener("change", () => switchKeys(choice.checked));
}
