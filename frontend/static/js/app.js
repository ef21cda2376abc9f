// What every page has: theme, navigation, menus, relative times, copy buttons; forms and keys are in their own files.

import "./forms.js";
import "./keys.js";

const AGO_EVERY_MS = 20000;

export function ago(seconds) {
  const past = Math.abs(seconds);
  const word = (n, unit) => `${n} ${unit}`;
  let text;
  if (past < 5) return "just now";
  if (past < 60) text = word(Math.floor(past), "s");
  else if (past < 3600) text = word(Math.floor(past / 60), "min");
  else if (past < 86400) text = word(Math.floor(past / 3600), "h");
  else if (past < 86400 * 60) text = word(Math.floor(past / 86400), "d");
  else text = word(Math.floor(past / (86400 * 30)), "months");
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}

function refreshTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const text = ago((Date.now() - Date.parse(element.dateTime)) / 1000);
    element.textContent = element.closest(".age") ? text.replace(" ago", "") : text;
  }
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // The choice lasts for this page only.
  }
  document.dispatchEvent(new CustomEvent("themechange"));
}

function toggleNavigation() {
  const open = document.body.classList.toggle("nav-open");
  for (const button of document.querySelectorAll("button[data-nav-toggle]")) button.setAttribute("aria-expanded", open);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copyFrom);
  const text = button.dataset.copy ?? source?.value ?? source?.textContent ?? "";
  const label = button.querySelector("span") ?? button;
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(text.trim());
    label.textContent = "Copied";
  } catch {
    label.textContent = "Press Ctrl+C";
    if (source) getSelection().selectAllChildren(source);
  }
  setTimeout(() => (label.textContent = before), 1500);
}

// Charts that were never in sight are drawn first; those whose figures stand in the page are there for Ctrl+P as well.
async function print() {
  const drawn = [];
  document.dispatchEvent(new CustomEvent("printsoon", { detail: drawn }));
  await Promise.allSettled(drawn);
  window.print();
}

addEventListener("beforeprint", () => document.dispatchEvent(new CustomEvent("printsoon", { detail: [] })));

document.addEventListener("click", (event) => {
  const on = (selector) => event.target.closest(selector);
  if (on("[data-theme-toggle]")) toggleTheme();
  if (on("[data-nav-toggle]")) toggleNavigation();
  if (on("[data-copy], [data-copy-from]")) copy(on("[data-copy], [data-copy-from]"));
  if (on("[data-print]")) print();
  if (on("[data-open]")) document.getElementById(on("[data-open]").dataset.open)?.showModal();
  if (on("[data-close]")) on("dialog")?.close();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  }
});

// What scrolls sideways can be reached and scrolled with the keyboard.
function focusScrollable() {
  for (const element of document.querySelectorAll(".table-wrap, .stepper, pre")) {
    if (element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight) element.tabIndex = 0;
  }
}

// A form that came back with a problem shows it, wherever the page was scrolled to.
function showProblem(root) {
  root
    .querySelector("form .note-bad[role=alert], form .errorlist, form .field-error")
    ?.scrollIntoView({ block: "center" });
  root.querySelector("[aria-invalid=true]")?.focus({ preventScroll: true });
}

document.addEventListener("htmx:afterSwap", (event) => refreshTimes(event.target));
document.addEventListener("htmx:afterSettle", (event) => {
  focusScrollable();
  if (event.target.closest("form")) showProblem(event.target);
});
document.addEventListener("toggle", focusScrollable, true);
addEventListener("resize", focusScrollable);
focusScrollable();
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
showProblem(document);
refreshTimes();
setInterval(refreshTimes, AGO_EVERY_MS);
