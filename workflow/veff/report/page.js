// The page: its table, its filters, and which view is open.

const PAGE = 25; // rows of the table at once
const PRINTED = 300; // rows of the table on paper

// Charts, drawn one after the other when nothing else is to do.
async function draw() {
  for (const place of document.querySelectorAll("[data-chart]")) {
    await new Promise((then) => setTimeout(then));
    const spec = window.specs[place.dataset.chart];
    await window.vegaEmbed(place, spec, { renderer: "svg", actions: false });
  }
}

function views(search) {
  const { data } = search;
  const { alleles, experiments } = data;
  const largest = Math.abs(data["best.logfc"][0]) || 1;
  const form = get("filters");
  const table = document.querySelector("table.top");
  const state = { found: null, order: [], page: 0, column: "size", descending: true };
  const rank = new Map(Array.from(data.allele_id, (id, i) => [id, i]));
  const link = (i) => `#allele-${data.allele_id[i]}`;
  const heat = new Heat(search, link);

  function row(i, e) {
    const one = search.answer(i, e);
    const about = group(experiments[e]);
    const image = get(`figure-${data.allele_id[i]}`)?.querySelector("img");
    const thumbnail = image
      ? el("a", { href: link(i), title: "profiles" }, el("img", { src: image.src, alt: "profiles" }))
      : null;
    const names = [alleles.id[i], data.also[i]].filter((text) => text && text !== ".").join(", ");
    return el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        el("a", { href: link(i) }, alleles.label[i]),
        names ? el("small", {}, names) : null,
      ),
      effect(one.logfc, largest),
      el(
        "td",
        { "data-label": "experiment" },
        broken(experiments[e].name),
        about ? el("small", {}, about) : null,
      ),
      data.has_p ? cell("p", two(one.p), "number") : null,
      data.has_max_p ? cell("p over all", two(data.max_p[i]), "number") : null,
      cell("folds agree", `${one.agree} of ${data.n_folds[e]}`, "number"),
      cell("JSD", three(one.jsd), "number"),
      alleles.gene ? cell("genes", alleles.gene[i]) : null,
      alleles.peaks ? cell("in peaks of", alleles.peaks[i]) : null,
      alleles.motifs ? cell("motifs", alleles.motifs[i]) : null,
      alleles.linked ? cell("enhancer of", alleles.linked[i]) : null,
      data.figures ? el("td", { class: "thumbnail" }, thumbnail) : null,
    );
  }

  function query() {
    const values = Object.fromEntries(new FormData(form));
    const { text = "", gene = "", experiment: name = "", biosample = "", assay = "" } = values;
    const { kind = "", p = "", size = "", agree } = values;
    return { text, gene, experiment: name, biosample, assay, kind, p, size, agree: Boolean(agree) };
  }

  function filter() {
    state.found = search.find(query());
    state.page = 0;
    sort();
  }

  function sort() {
    const { found, column, descending } = state;
    // Found from the largest of all effects on: nothing to sort where each allele answers with it.
    const sorted =
      column === "size" &&
      descending &&
      found.answers.every((e, k) => e === data["best.column"][found.rows[k]]);
    state.order = sorted ? found.rows.map((_, k) => k) : search.order(found, column, descending);
    for (const heading of table.querySelectorAll("th[data-sort]")) {
      const here = heading.dataset.sort === column;
      if (here) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    }
    show();
    // Behind the table, so that nobody who types waits for it.
    clearTimeout(state.later);
    state.later = setTimeout(heatOfFound, 150);
  }

  function heatOfFound() {
    clearTimeout(state.later); // nothing is drawn again under a reader's hands
    heat.show(Array.from(state.order, (k) => state.found.rows[k]), state.found.asked);
  }

  function body(from, to) {
    const { rows, answers } = state.found;
    const shown = Array.from(state.order.slice(from, to), (k) => row(rows[k], answers[k]));
    table.tBodies[0].replaceChildren(...shown);
  }

  function show() {
    const n = state.order.length;
    const from = state.page * PAGE;
    const to = Math.min(n, from + PAGE);
    body(from, to);
    const which = n > PAGE ? `, shown ${number(from + 1)} to ${number(to)}` : "";
    get("shown").textContent = `${number(n)} of ${number(data.n)} alleles${which}`;
    get("previous").disabled = !from;
    get("next").disabled = to >= n;
    get("pages").hidden = n <= PAGE;
    const without = n ? [] : search.unscored(query().text);
    get("without").replaceChildren(
      ...without.slice(0, 5).map((one) => {
        const name = `${one.chrom}:${one.pos} ${one.ref}>${one.alt} ${one.id}`;
        return el("p", { class: "notice" }, `${name} has no score: ${one.status}. ${one.reason}`);
      }),
    );
  }

  let left = 0; // where the reader was on the page of all alleles
  function route() {
    const said = /^#(allele|haplotype)-(\d+)$/.exec(location.hash);
    const i = said?.[1] === "allele" ? rank.get(Number(said[2])) : null;
    const page = i != null ? get("allele") : said && get(said[0].slice(1));
    const pages = [...document.querySelectorAll("article")];
    const was = pages.some((one) => !one.hidden);
    if (page && !was) left = scrollY;
    for (const one of pages) one.hidden = one !== page;
    get("all").hidden = Boolean(page);
    if (page) {
      if (i != null) showAllele(page, search, i, link);
      page.querySelector("h2").focus({ preventScroll: true });
      scrollTo({ top: 0, behavior: "instant" });
    } else if (was) {
      const target = location.hash.length > 1 && get(location.hash.slice(1));
      if (target && target.id !== "top") target.scrollIntoView();
      else scrollTo({ top: left, behavior: "instant" });
    }
  }

  function csv() {
    const { rows, answers } = state.found;
    const texts = ["id", "gene", "peaks", "motifs", "linked"].filter((name) => alleles[name]);
    const p = data.has_p ? ["p"] : [];
    const maxP = data.has_max_p ? ["p_over_all"] : [];
    const head = ["allele_id", "chrom", "pos", "ref", "alt", ...texts, "experiment", "biosample"];
    head.push("assay", "logfc", "jsd", ...p, ...maxP, "folds_agree", "n_folds");
    // A spreadsheet would compute a text that begins like a formula.
    const quoted = (text) => `"${text.replace(/^[=+@-]/, "'$&").replaceAll('"', '""')}"`;
    const exact = (x) => (Number.isNaN(x) ? "" : Number(x.toPrecision(5)));
    const lines = Array.from(state.order, (k) => {
      const i = rows[k];
      const one = search.answer(i, answers[k]);
      const about = experiments[one.e];
      const named = [alleles.ref[i], alleles.alt[i], ...texts.map((name) => alleles[name][i])];
      return [
        data.allele_id[i],
        quoted(alleles.chrom[i]),
        data.pos[i],
        ...named.map(quoted),
        ...[about.name, about.biosample, about.assay].map(quoted),
        exact(one.logfc),
        exact(one.jsd),
        ...(data.has_p ? [exact(one.p)] : []),
        ...(data.has_max_p ? [exact(data.max_p[i])] : []),
        one.agree,
        data.n_folds[one.e],
      ].join(",");
    });
    return new Blob([[head.join(","), ...lines, ""].join("\n")], { type: "text/csv" });
  }

  // What can be chosen of the experiments.
  function options(select, values) {
    if (!select) return;
    const found = [...new Set(values)].filter(Boolean);
    found.sort(new Intl.Collator("en", { numeric: true }).compare);
    select.append(...found.map((value) => el("option", { value }, value)));
    select.closest("label").hidden = found.length < 2;
  }

  for (const key of ["name", "biosample", "assay"]) {
    const name = key === "name" ? "experiment" : key;
    options(form.elements[name], experiments.map((one) => one[key]));
  }
  options(form.elements.kind, search.kinds);

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  get("previous").addEventListener("click", () => (state.page--, show()));
  get("next").addEventListener("click", () => (state.page++, show()));
  get("download").addEventListener("click", () => {
    const href = URL.createObjectURL(csv());
    el("a", { href, download: `${data.run}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  });
  for (const heading of table.querySelectorAll("th[data-sort]")) {
    heading.querySelector("button").addEventListener("click", () => {
      const column = heading.dataset.sort;
      const first = ["size", "logfc", "jsd", "agree"].includes(column);
      state.descending = state.column === column ? !state.descending : first;
      state.column = column;
      state.page = 0;
      sort();
    });
  }
  addEventListener("hashchange", route);
  addEventListener("beforeprint", () => {
    body(0, PRINTED);
    const n = state.order.length;
    get("printed").textContent =
      n > PRINTED ? `The first ${PRINTED} of ${number(n)} alleles.` : `${number(n)} alleles.`;
    heat.draw(PRINTED_COLUMNS);
  });
  addEventListener("afterprint", () => (show(), heat.draw()));
  // The first rows stand there already, as they are without a script.
  form.hidden = false;
  filter();
  heatOfFound();
  route();
}

// The contents of the page.
for (const section of document.querySelectorAll("main > section[id]")) {
  const heading = section.querySelector("h2").textContent;
  get("sections").append(el("a", { href: `#${section.id}` }, heading), " ");
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
});

// Resolved when the page can be used, and when all charts are drawn.
window.specs = JSON.parse(get("specs").textContent);
window.ready = (async () => {
  const block = get("block");
  return block ? views(new Search(await unpack(block.textContent))) : null;
})();
window.drawn = window.ready.then(draw);
