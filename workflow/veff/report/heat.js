// The heat map: alleles × experiments, these grouped or clustered.

const HEAT_ROWS = 40; // alleles at first, and with each "more"
const PRINTED_COLUMNS = 25; // experiments on paper

class Heat {
  constructor(search, link) {
    Object.assign(this, { search, link, place: get("heat"), most: HEAT_ROWS, found: [], asked: [] });
    if (!this.place) return;
    this.grouped = Heat.grouped(search.data.experiments);
    get("zoom").addEventListener("input", (event) => {
      this.place.style.setProperty("--cell", `${event.target.value}px`);
      this.hint();
    });
    get("columns").addEventListener("input", () => this.draw());
    get("more").addEventListener("click", () => {
      this.most += HEAT_ROWS;
      this.draw();
    });
    const open = (event) => {
      const cell = event.target.closest?.("td[data-experiment]");
      if (cell) location.hash = link(this.allele(cell));
    };
    this.place.addEventListener("click", open);
    this.place.addEventListener("mouseover", (event) => this.say(event.target));
    this.place.addEventListener("focusin", (event) => this.say(event.target));
    this.place.addEventListener("keydown", (event) => {
      if (event.key === "Enter") open(event);
      else if (this.move(event.target, event.key)) event.preventDefault();
    });
  }

  // What the map shows from now on: numbers of alleles, in their order, and of experiments.
  show(found, asked) {
    this.most = HEAT_ROWS;
    [this.found, this.asked] = [found, asked];
    this.draw();
  }

  draw(most = Infinity) {
    if (!this.place) return;
    const { search } = this;
    const { data } = search;
    const { experiments } = data;
    const largest = Math.abs(data["best.logfc"][0]) || 1;
    const whole = this.found.filter((i) => i < data.n_whole);
    const shown = whole.slice(0, this.most);
    const clustered = get("columns").value === "clustered";
    const asked = new Set(this.asked);
    let drawn = (clustered ? data.clustered : this.grouped).filter((e) => asked.has(e));
    const n = drawn.length;
    if (n > most) {
      const strongest = (e) =>
        Math.max(...shown.map((i) => Math.abs(search.answer(i, e).logfc) || 0));
      const size = new Map(drawn.map((e) => [e, strongest(e)]));
      const kept = new Set([...drawn].sort((a, b) => size.get(b) - size.get(a)).slice(0, most));
      drawn = drawn.filter((e) => kept.has(e));
    }
    const groups = [];
    const begins = new Set();
    drawn.forEach((e, k) => {
      const name = clustered ? "" : group(experiments[e]);
      if (groups.at(-1)?.name === name) groups.at(-1).n++;
      else begins.add(k) && groups.push({ name, n: 1 });
    });
    const above = el("tr", {}, el("td"));
    for (const one of groups) {
      const name = el("span", { title: one.name, class: one.n < 4 ? "upright" : null }, one.name);
      above.append(el("th", { colspan: one.n, scope: "colgroup", class: "first" }, name));
    }
    const names = el("tr", {}, el("td"));
    drawn.forEach((e, k) => {
      const name = el("span", { title: experiments[e].name }, experiments[e].short);
      names.append(el("th", { scope: "col", class: begins.has(k) ? "first" : null }, name));
    });
    const head = el("thead", {}, groups.some((one) => one.name) ? above : null, names);
    const lines = shown.map((i) => {
      const name = el("a", { href: this.link(i), tabindex: -1 }, data.alleles.label[i]);
      const line = el("tr", { "data-allele": i }, el("th", { scope: "row" }, name));
      drawn.forEach((e, k) => {
        const { logfc } = search.answer(i, e);
        const cell = line.insertCell();
        cell.dataset.experiment = e;
        cell.tabIndex = -1;
        if (begins.has(k)) cell.classList.add("first");
        if (Number.isNaN(logfc)) return;
        cell.classList.add(side(logfc));
        const share = Math.min(1, Math.abs(logfc) / largest) ** 0.7;
        cell.style.setProperty("--share", `${(100 * share).toFixed(0)}%`);
      });
      return line;
    });
    const table = el("table", { role: "grid", "aria-label": "log2 fold changes" });
    table.append(head, el("tbody", {}, ...lines));
    this.place.replaceChildren(table);
    const first = this.place.querySelector("tbody td");
    if (first) first.tabIndex = 0; // from where the arrow keys lead on
    const fewer = n > drawn.length ? ` (on paper the ${drawn.length} with the largest effects)` : "";
    get("heat-shown").textContent =
      `${number(shown.length)} of ${number(whole.length)} alleles found, ` +
      `${number(n)} of ${number(experiments.length)} experiments${fewer}. ` +
      `The deepest colour is a log2 fold change of ${largest.toPrecision(3)}.`;
    get("heat-cell").textContent = "";
    get("more").hidden = shown.length === whole.length;
    get("zoom").closest("label").hidden = n < 8;
    get("columns").closest("label").hidden = n < 3;
    this.hint();
  }

  // Experiments in groups of one biosample and assay.
  static grouped(experiments) {
    const { compare } = new Intl.Collator("en", { numeric: true });
    const order = (a, b) => (key) => compare(experiments[a][key], experiments[b][key]);
    return [...experiments.keys()].sort(
      (a, b) => ["biosample", "assay", "name"].map(order(a, b)).find(Boolean) || a - b,
    );
  }

  hint() {
    get("heat-hint").hidden = this.place.scrollWidth <= this.place.clientWidth;
  }

  allele(cell) {
    return Number(cell.parentNode.dataset.allele);
  }

  // What a cell stands for, in words.
  say(target) {
    const cell = target.closest?.("td[data-experiment]");
    if (!cell) return;
    const { data } = this.search;
    const [i, e] = [this.allele(cell), Number(cell.dataset.experiment)];
    const said = signed(this.search.answer(i, e).logfc) || "no score";
    const about = group(data.experiments[e]);
    const name = about ? `${data.experiments[e].name} (${about})` : data.experiments[e].name;
    cell.ariaLabel = `${data.alleles.label[i]} in ${name}: ${said}`;
    get("heat-cell").textContent = cell.ariaLabel;
  }

  // To the cell that an arrow key leads to; whether the key is such a one.
  move(cell, key) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!steps[key] || !cell.matches("td[data-experiment]")) return false;
    const [down, right] = steps[key];
    const next = cell.closest("tbody").rows[cell.parentNode.sectionRowIndex + down]?.cells[
      cell.cellIndex + right
    ];
    if (next?.matches("td")) {
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    return true;
  }
}
