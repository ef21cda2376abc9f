// The list of runs: tick all, tick a stretch with Shift, and say how many are ticked.

const MOST_COMPARED = 10; // MAX_COMPARED of experiments/judging/comparing/comparison.py

let last = null;

const limit = (count) =>
  count < 2
    ? "; select another one to compare"
    : count > MOST_COMPARED
      ? `; ${MOST_COMPARED} at most are compared`
      : "";

const boxes = () => [...document.querySelectorAll("#selection tbody input[name=runs]")];

function tell() {
  const all = boxes();
  const count = all.filter((box) => box.checked).length;
  const status = document.querySelector("[data-selected]");
  if (status) status.textContent = count ? `${count} selected${limit(count)}` : "";
  for (const button of document.querySelectorAll(".run-bar button[name=action]")) {
    button.disabled = button.value === "compare" ? count < 2 || count > MOST_COMPARED : !count;
  }
  const every = document.querySelector("[data-select-all]");
  if (!every) return;
  every.hidden = false;
  every.checked = count > 0 && count === all.length;
  every.indeterminate = count > 0 && count < all.length;
}

document.addEventListener("click", (event) => {
  const box = event.target.closest("#selection tbody input[name=runs]");
  if (!box) return;
  const all = boxes();
  if (event.shiftKey && last && all.includes(last)) {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    for (const one of all.slice(from, to + 1)) one.checked = box.checked;
  }
  last = box;
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.closest("#selection")) tell();
});
document.addEventListener("htmx:afterSettle", tell);
addEventListener("pageshow", tell);
tell();

// Enter in the tags field adds them; the form's first button would compare.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.id !== "bulk-tags") return;
  event.preventDefault();
  document.querySelector(".run-bar button[value=tag]")?.click();
});
