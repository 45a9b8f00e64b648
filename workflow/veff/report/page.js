// The views: the table, the heat map and the page of an allele, of what `Search` finds.

const PAGE = 25; // rows of the table at once
const PRINTED = 300; // rows of the table on paper
const PRINTED_COLUMNS = 25; // experiments of the heat map on paper
const HEAT_ROWS = 40;

const get = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) one.setAttribute(name, "");
    else if (value !== false && value != null) one.setAttribute(name, value);
  }
  one.append(...children.filter((child) => child != null));
  return one;
}

// A name of an experiment, which may break after its separators.
function broken(name) {
  const one = el("span");
  for (const part of name.split(/(?<=[_.:|/])/)) one.append(part, el("wbr"));
  return one;
}

const signed = (x) => (Number.isNaN(x) ? "" : `${x < 0 ? "−" : "+"}${Math.abs(x).toPrecision(3)}`);
const two = (x) => (Number.isNaN(x) ? "" : String(Number(x.toPrecision(2))));
const number = (n) => n.toLocaleString("en");
const side = (x) => (x > 0 ? "up" : "down");
const fold = (x) => `${(2 ** x).toPrecision(2)} times the reads`;

// Charts, drawn one after the other when nothing else is to do.
async function draw() {
  const specs = JSON.parse(get("specs").textContent);
  for (const place of document.querySelectorAll("[data-chart]")) {
    await new Promise((then) => setTimeout(then));
    const spec = specs[place.dataset.chart];
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
  const group = (one) => [one.biosample, one.assay].filter(Boolean).join(" · ");
  const picture = (i) => get(`figure-${data.allele_id[i]}`)?.querySelector("img");

  function bar(logfc) {
    const width = `${Math.min(100, (100 * Math.abs(logfc)) / largest).toFixed(1)}%`;
    return el("span", { class: `bar ${side(logfc)}`, style: `width: ${width}` });
  }

  function effect(logfc) {
    const text = el("span", { class: `effect ${side(logfc)}` }, signed(logfc));
    return el("td", { class: "number", "data-label": "log2 FC", title: fold(logfc) }, text, bar(logfc));
  }

  function experiment(e) {
    const one = experiments[e];
    const more = group(one) ? el("small", {}, group(one)) : null;
    return el("td", { "data-label": "experiment" }, broken(one.name), more);
  }

  const folds = (one) =>
    el("td", { class: "number", "data-label": "folds agree" }, `${one.agree} of ${data.n_folds[one.e]}`);
  const cell = (label, text, kind) => el("td", { "data-label": label, class: kind }, text);

  function row(i, e) {
    const one = search.answer(i, e);
    const image = picture(i);
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
      effect(one.logfc),
      experiment(e),
      data.has_p ? cell("p", two(one.p), "number") : null,
      data.has_max_p ? cell("p over all", two(data.max_p[i]), "number") : null,
      folds(one),
      cell("JSD", three(one.jsd), "number"),
      alleles.gene ? cell("genes", alleles.gene[i]) : null,
      alleles.peaks ? cell("in peaks of", alleles.peaks[i]) : null,
      alleles.motifs ? cell("motifs", alleles.motifs[i]) : null,
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
    state.later = setTimeout(heat, 150);
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

  // Alleles × experiments, these in groups of one biosample and assay.
  const columns = [...experiments.keys()].sort((a, b) =>
    ["biosample", "assay", "name"]
      .map((key) => experiments[a][key].localeCompare(experiments[b][key], "en", { numeric: true }))
      .find(Boolean) || a - b,
  );

  function heat(most = Infinity) {
    const place = get("heat");
    if (!place) return;
    const { rows } = state.found;
    const whole = Array.from(state.order, (k) => rows[k]).filter((i) => i < data.n_whole);
    const shown = whole.slice(0, HEAT_ROWS);
    const asked = new Set(state.found.asked);
    let drawn = columns.filter((e) => asked.has(e));
    const n = drawn.length;
    if (n > most) {
      const size = new Map(drawn.map((e) => [e, strongest(e, shown)]));
      const kept = new Set([...drawn].sort((a, b) => size.get(b) - size.get(a)).slice(0, most));
      drawn = drawn.filter((e) => kept.has(e));
    }
    const groups = [];
    for (const e of drawn) {
      const name = group(experiments[e]);
      if (groups.at(-1)?.name === name) groups.at(-1).n++;
      else groups.push({ name, n: 1 });
    }
    const above = el("tr", {}, el("td"));
    for (const one of groups) {
      const upright = one.n < 4 ? "upright" : null;
      const name = el("span", { title: one.name, class: upright }, one.name);
      above.append(el("th", { colspan: one.n, scope: "colgroup", class: "first" }, name));
    }
    const begins = new Set();
    groups.reduce((at, one) => (begins.add(at), at + one.n), 0);
    const names = el("tr", {}, el("td"));
    drawn.forEach((e, k) => {
      const name = el("span", { title: experiments[e].name }, experiments[e].short);
      names.append(el("th", { scope: "col", class: begins.has(k) ? "first" : null }, name));
    });
    const head = el("thead", {}, groups.some((one) => one.name) ? above : null, names);
    const lines = shown.map((i) => {
      const name = el("th", { scope: "row" }, el("a", { href: link(i) }, alleles.label[i]));
      const line = el("tr", { "data-allele": i }, name);
      drawn.forEach((e, k) => {
        const { logfc } = search.answer(i, e);
        const cell = line.insertCell();
        cell.dataset.experiment = e;
        if (begins.has(k)) cell.classList.add("first");
        if (Number.isNaN(logfc)) return;
        cell.classList.add(side(logfc));
        const share = Math.min(1, Math.abs(logfc) / largest) ** 0.7;
        cell.style.setProperty("--share", `${(100 * share).toFixed(0)}%`);
      });
      return line;
    });
    place.replaceChildren(el("table", {}, head, el("tbody", {}, ...lines)));
    const fewer = n > drawn.length ? ` (on paper the ${drawn.length} with the largest effects)` : "";
    get("heat-shown").textContent =
      `${number(shown.length)} of ${number(whole.length)} alleles found, ` +
      `${number(n)} of ${number(experiments.length)} experiments${fewer}. ` +
      `The deepest colour is a log2 fold change of ${largest.toPrecision(3)}.`;
    get("heat-hint").hidden = place.scrollWidth <= place.clientWidth;
    get("zoom").closest("label").hidden = n < 8;
  }

  function cellOf(event) {
    const cell = event.target.closest?.("td[data-experiment]");
    return cell && [cell, Number(cell.parentNode.dataset.allele), Number(cell.dataset.experiment)];
  }

  function strongest(e, shown) {
    return Math.max(...shown.map((i) => Math.abs(search.answer(i, e).logfc) || 0));
  }

  // The page of an allele.
  function links(i) {
    const contig = alleles.chrom[i];
    const known = /^(chr)?(\d+|X|Y|M|MT)$/.exec(contig);
    const found = [];
    if (known && data.links.ucsc) {
      const ucsc = `chr${known[2].replace("MT", "M")}`;
      const short = known[2].replace(/^M$/, "MT");
      const [from, to] = [Math.max(1, data.pos[i] - 500), data.pos[i] + 500];
      found.push(["UCSC", `${data.links.ucsc}${ucsc}:${from}-${to}`]);
      if (data.links.ensembl) {
        found.push(["Ensembl", `${data.links.ensembl}${short}:${from}-${to}`]);
      }
      const bases = /^[ACGT]+$/;
      if (data.links.gnomad && bases.test(alleles.ref[i]) && bases.test(alleles.alt[i])) {
        const name = `${short.replace("MT", "M")}-${data.pos[i]}-${alleles.ref[i]}-${alleles.alt[i]}`;
        found.push(["gnomAD", data.links.gnomad.replace("{}", name)]);
      }
    }
    for (const name of new Set(`${alleles.id[i]} ${data.also[i] || ""}`.match(/\brs\d+\b/g))) {
      found.push([`dbSNP ${name}`, `https://www.ncbi.nlm.nih.gov/snp/${name}`]);
    }
    return found.map(([name, href]) =>
      el("a", { href, target: "_blank", rel: "noopener noreferrer" }, name),
    );
  }

  // Alleles on both sides, close enough to share a window of a model.
  function neighbours(i) {
    const near = [];
    for (let k = 0; k < data.n; k++) {
      if (k !== i && search.contigs[k] === search.contigs[i]) {
        const away = data.pos[k] - data.pos[i];
        if (Math.abs(away) <= 1000) near.push([away, k]);
      }
    }
    return near.sort(([a], [b]) => a - b);
  }

  function facts(i) {
    const texts = [
      ["identifier", [alleles.id[i], data.also[i]].filter((x) => x && x !== ".").join(", ")],
      ["reference > alternate", `${alleles.ref[i]} > ${alleles.alt[i]} (${search.kinds[i]})`],
      ["closest genes", alleles.gene?.[i] && `${alleles.gene[i]}${distance(alleles.away?.[i])}`],
      ["in a peak", alleles.peak?.[i]],
      ["in peaks of", alleles.peaks?.[i]],
      ["motif hits", alleles.motifs?.[i]],
      ["p over all experiments", data.has_max_p && two(data.max_p[i])],
    ];
    const rows = texts
      .filter(([, text]) => text)
      .map(([name, text]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text)));
    const near = neighbours(i).slice(0, 40);
    if (near.length) {
      const list = near.map(([away, k]) => {
        const said = `${alleles.label[k]} (${away < 0 ? "−" : "+"}${Math.abs(away)} bp, `;
        return el("li", {}, el("a", { href: link(k) }, said + signed(data["best.logfc"][k]) + ")"));
      });
      const heading = el("th", { scope: "row" }, "alleles within 1 kb");
      rows.push(el("tr", {}, heading, el("td", {}, el("ul", { class: "near" }, ...list))));
    }
    return el("table", { class: "facts" }, el("tbody", {}, ...rows));
  }

  const distance = (away) => {
    if (!away) return "";
    return away >= 1000 ? ` (the first ${(away / 1000).toFixed(1)} kb away)` : ` (the first ${away} bp away)`;
  };

  function ranked(i) {
    const headings = ["experiment", "biosample", "assay", "log2 FC", "p", "folds agree", "JSD"];
    const said = headings.filter(
      (name) =>
        (name !== "p" || data.has_p) &&
        (!["biosample", "assay"].includes(name) || experiments.some((one) => one[name])),
    );
    const numeric = new Set(["log2 FC", "p", "folds agree", "JSD"]);
    const head = said.map((name) =>
      el("th", { scope: "col", class: numeric.has(name) ? "number" : null }, name),
    );
    const body = search.answers(i).map((one) => {
      const about = experiments[one.e];
      const cells = {
        experiment: () => el("th", { scope: "row" }, broken(about.name)),
        biosample: () => cell("biosample", about.biosample),
        assay: () => cell("assay", about.assay),
        "log2 FC": () => effect(one.logfc),
        p: () => cell("p", two(one.p), "number"),
        "folds agree": () => folds(one),
        JSD: () => cell("JSD", three(one.jsd), "number"),
      };
      return el("tr", {}, ...said.map((name) => cells[name]()));
    });
    const table = el("table", { class: "cards" }, el("thead", {}, el("tr", {}, ...head)));
    table.append(el("tbody", {}, ...body));
    return table;
  }

  function allele(i) {
    const [first] = search.answers(i);
    const all = i < data.n_whole;
    const image = picture(i);
    const n = data.n_folds[first.e];
    const judged = data.has_p ? `, p = ${two(first.p)}` : "";
    const figure = image
      ? el(
          "figure",
          {},
          el("img", { src: image.src, alt: image.alt }),
          el("figcaption", {}, el("a", { href: `#figure-${data.allele_id[i]}` }, "among all profiles")),
        )
      : el("p", {}, "No profiles were drawn of this allele; more are with top: {n: …}.");
    const out = links(i);
    get("allele").replaceChildren(
      el("p", { class: "screen" }, el("a", { href: "#top", class: "back" }, "← all alleles")),
      el("h2", { tabindex: -1 }, alleles.label[i]),
      el(
        "p",
        { class: "answer" },
        "Largest in ",
        el("strong", {}, experiments[first.e].name),
        `: log2 fold change `,
        el("strong", { class: `effect ${side(first.logfc)}` }, signed(first.logfc)),
        ` (${fold(first.logfc)})${judged}, ${first.agree} of ${n} folds agree in direction.`,
      ),
      out.length ? el("p", { class: "links" }, ...out.flatMap((one) => [one, " "])) : "",
      facts(i),
      el("h3", {}, all ? "In all experiments" : "In the experiment of its largest effect"),
      all ? "" : el("p", {}, "scores.parquet has the others."),
      el("div", { class: "scroll" }, ranked(i)),
      el("h3", {}, "Profiles and attributions"),
      figure,
    );
  }

  let left = 0; // where the reader was on the page of all alleles
  function route() {
    const said = /^#allele-(\d+)$/.exec(location.hash);
    const i = said && rank.get(Number(said[1]));
    const open = i != null;
    if (open && get("allele").hidden) left = scrollY;
    const was = !get("allele").hidden;
    get("allele").hidden = !open;
    get("all").hidden = open;
    if (open) {
      allele(i);
      get("allele").querySelector("h2").focus({ preventScroll: true });
      scrollTo({ top: 0, behavior: "instant" });
    } else if (was) {
      const target = location.hash.length > 1 && get(location.hash.slice(1));
      if (target && target.id !== "top") target.scrollIntoView();
      else scrollTo({ top: left, behavior: "instant" });
    }
  }

  function csv() {
    const { rows, answers } = state.found;
    const texts = ["id", "gene", "peaks", "motifs"].filter((name) => alleles[name]);
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
  get("heat")?.addEventListener("mouseover", (event) => {
    const found = cellOf(event);
    if (!found) return;
    const [cell, i, e] = found;
    const said = signed(search.answer(i, e).logfc) || "no score";
    cell.title = `${alleles.label[i]} in ${experiments[e].name}: ${said}`;
  });
  get("heat")?.addEventListener("click", (event) => {
    const found = cellOf(event);
    if (found) location.hash = link(found[1]);
  });
  get("zoom")?.addEventListener("input", (event) => {
    get("heat").style.setProperty("--cell", `${event.target.value}px`);
    get("heat-hint").hidden = get("heat").scrollWidth <= get("heat").clientWidth;
  });
  addEventListener("hashchange", route);
  addEventListener("beforeprint", () => {
    body(0, PRINTED);
    const n = state.order.length;
    get("printed").textContent =
      n > PRINTED ? `The first ${PRINTED} of ${number(n)} alleles.` : `${number(n)} alleles.`;
    heat(PRINTED_COLUMNS);
  });
  addEventListener("afterprint", () => (show(), heat()));
  // The first rows stand there already, as they are without a script.
  form.hidden = false;
  filter();
  heat();
  route();
  return { csv };
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
});

// Resolved when the page can be used, and when all charts are drawn.
window.ready = (async () => {
  const block = get("block");
  return block ? views(new Search(await unpack(block.textContent))) : null;
})();
window.drawn = window.ready.then(draw);
