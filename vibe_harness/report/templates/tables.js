"use strict";
// Every table.sortable: sort by its headings, search by its row names, choose its columns. Without this script the
// page shows all of it.
(() => {
  const said = document.getElementById("said");
  const say = (words) => { if (said) said.textContent = words; };
  const tables = [...document.querySelectorAll("table.sortable")];
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.v !== undefined) return cell.dataset.v === "" ? null : Number(cell.dataset.v);
    return cell.textContent.trim() || null;
  };

  const sort = (table, column, rising) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => [keyOf(row, column), place, row]);
    rows.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return (a === null) - (b === null) || i - j;  // what has no figure stands last
      const order = typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
      return (rising ? order : -order) || i - j;
    });
    body.append(...rows.map(([, , row]) => row));
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.cellIndex === column) heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else heading.removeAttribute("aria-sort");
    }
  };

  for (const table of tables) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const rising = heading.getAttribute("aria-sort") !== "ascending";
        sort(table, heading.cellIndex, rising);
        say(`Sorted by ${button.textContent.trim()}, ${rising ? "rising" : "falling"}`);
      });
    }
    const chooser = table.closest("section")?.querySelector("details.columns");
    if (!chooser) continue;
    const list = chooser.querySelector("div");
    for (const heading of [...table.tHead.rows[0].cells].slice(1)) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      label.className = "tick";
      box.type = "checkbox";
      box.checked = !heading.hidden;
      label.append(box, heading.textContent.trim());
      list.append(label);
      box.addEventListener("change", () => {
        for (const row of table.rows) row.cells[heading.cellIndex].hidden = !box.checked;
      });
    }
    chooser.hidden = false;
  }

  const search = document.getElementById("search");
  search?.addEventListener("input", () => {
    const sought = search.value.trim().toLowerCase();
    let shown = 0;
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(sought);
        shown += !row.hidden;
      }
    }
    say(`${shown} rows`);
  });
  for (const box of document.querySelectorAll("[data-show]")) {
    const follow = () => document.body.classList.toggle(`hide-${box.dataset.show}`, !box.checked);
    box.addEventListener("change", follow);
    follow();
  }
  const controls = document.getElementById("controls");
  if (controls) controls.hidden = false;
})();
