// Sorts tables of functions by a column of figures; the first order is by what explains most.

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  const figure = (row, at) => Number(row.cells[at].dataset.value);
  heads.forEach((head, at) => {
    if (!table.tBodies[0].rows[0]?.cells[at].dataset.value) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].sort((a, b) => (figure(a, at) - figure(b, at)) * (rising ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}
