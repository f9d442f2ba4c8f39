"use strict";
// Tabs over the sections .panel; every table.sortable: sort by its headings, choose its columns; rows and blocks are
// filtered by search and selects. Without this script the page shows all of it.
(() => {
  const said = document.getElementById("said");
  const say = (words) => { if (said) said.textContent = words; };
  const tables = [...document.querySelectorAll("table.sortable")];
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const panels = [...document.querySelectorAll(".panel")];
  const links = [...document.querySelectorAll("#tabs a")];
  const show = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const panel = target?.closest(".panel") ?? panels[0];
    for (const one of panels) one.hidden = one !== panel;
    for (const link of links) {
      if (link.hash === `#${panel.id}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (target && target !== panel) target.scrollIntoView();
    else window.scrollTo(0, 0);
  };
  if (panels.length && links.length) {
    window.addEventListener("hashchange", show);
    show();
  }

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

  const chooseColumns = (table, list) => {
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
    list.hidden = false;
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
    const list = table.closest("section:not(.panel)")?.querySelector(".columns");
    if (list) chooseColumns(table, list);
  }

  const search = document.getElementById("search");
  const selects = [...document.querySelectorAll("[data-filter]")];
  const chosen = (names) => selects.filter((one) => names.includes(one.dataset.filter) && one.value);
  const filter = () => {
    const sought = search.value.trim().toLowerCase();
    const ofRows = chosen(["licence", "weights", "size"]);
    for (const block of document.querySelectorAll(".block")) {
      block.hidden = chosen(["corpus", "dimension"]).some((one) => block.dataset[one.dataset.filter] !== one.value);
    }
    let shown = 0;
    for (const row of document.querySelectorAll("#scores tbody tr")) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(sought)
        || ofRows.some((one) => row.dataset[one.dataset.filter] !== one.value);
      shown += !row.hidden && !row.closest(".block").hidden;
    }
    say(`${shown} ${shown === 1 ? "row" : "rows"}`);
  };
  search?.addEventListener("input", filter);
  for (const one of selects) one.addEventListener("change", filter);

  const controls = document.getElementById("controls");
  if (controls) {
    const roomy = window.matchMedia("(min-width: 40.01rem)");
    const unfold = () => { controls.open = roomy.matches; };
    roomy.addEventListener("change", unfold);
    controls.hidden = false;
    unfold();
  }
})();
