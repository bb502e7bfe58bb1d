"use strict";
// Sorts and filters the tables of the class page; without this script they show all rows in the order of the page.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const key = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
  const compare = (a, b) => a - b || String(a).localeCompare(String(b), undefined, { numeric: true });

  [...table.tHead.rows[0].cells].forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => (down ? -1 : 1) * compare(key(a, i), key(b, i)));
      body.append(...rows);
    });
  });

  const tools = document.createElement("p");
  tools.className = "tools";
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("Show only rows with ", input);
  const count = document.createElement("output");
  const visible = (row) => getComputedStyle(row).display !== "none"; // the page's style hides other sections
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    for (const row of rows) shown += visible(row) ? 1 : 0;
    count.textContent = `${shown} of ${rows.length} ${rows.length === 1 ? "student" : "students"}`;
  };
  input.addEventListener("input", filter);
  document.getElementById("section")?.addEventListener("change", filter);
  tools.append(label, count);
  table.parentElement.before(tools);
  filter();
}
