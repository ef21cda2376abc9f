// Runs before the page is painted, so that a chosen theme never flashes in the other one.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is blocked: the system's preference applies.
}
