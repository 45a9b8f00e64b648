"use strict";

// Charts, as large as their places; drawn again only by a new width.
const specs = JSON.parse(document.getElementById("specs").textContent);
for (const place of document.querySelectorAll("[data-chart]")) {
  window.vegaEmbed(place, specs[place.dataset.chart], { renderer: "svg", actions: false });
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
});

// The table of top alleles: a click on a heading sorts, text in the field filters.
const table = document.querySelector("table.top");
if (table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];

  const headings = [...table.querySelectorAll("th[data-sort]")];
  const sort = (heading) => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const numeric = heading.dataset.sort === "number";
    const column = heading.cellIndex;
    const value = (row) => row.cells[column].textContent;
    const compare = numeric
      ? (a, b) => (parseFloat(value(a)) || 0) - (parseFloat(value(b)) || 0)
      : (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
    rows.sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
    body.append(...rows);
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };
  for (const heading of headings) {
    heading.tabIndex = 0;
    heading.addEventListener("click", () => sort(heading));
    heading.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort(heading);
    });
  }

  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let n = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      n += !row.hidden;
    }
    shown.textContent = search.value ? `${n} of ${rows.length}` : "";
  });
}
