// The page of an allele: what the run knows of it, section by section.

// A section is a function of what is searched, of the allele's number and of what makes the address
// of a number. It returns {heading, content: [elements]}, and with `draw` what is to be done once
// these stand on the page; or null where there is nothing to say. One more is one more function in
// this list, and its data a key of the header that `veff.report.build` makes.
const SECTIONS = [ranked, inBiosamples, locus, profiles];

function showAllele(place, search, i, link) {
  const { data } = search;
  const [first] = search.answers(i);
  const judged = data.has_p ? `, p = ${two(first.p)}` : "";
  const out = links(data, i);
  const sections = SECTIONS.map((section) => section(search, i, link)).filter(Boolean);
  place.replaceChildren(
    el("p", { class: "screen" }, el("a", { href: "#top", class: "back" }, "← all alleles")),
    el("h2", { tabindex: -1 }, data.alleles.label[i]),
    el(
      "p",
      { class: "answer" },
      "Largest in ",
      el("strong", {}, data.experiments[first.e].name),
      `: log2 fold change `,
      el("strong", { class: `effect ${side(first.logfc)}` }, signed(first.logfc)),
      ` (${fold(first.logfc)})${judged}, ${first.agree} of ${data.n_folds[first.e]} folds agree in direction.`,
    ),
    out.length ? el("p", { class: "links" }, ...out.flatMap((one) => [one, " "])) : "",
    facts(search, i, link),
    ...sections.flatMap(({ heading, content }) => [el("h3", {}, heading), ...content]),
  );
  sections.forEach(({ draw }) => draw?.());
}

// Pages of genome browsers and databases on the allele, at the right assembly.
function links(data, i) {
  const { alleles } = data;
  const known = /^(chr)?(\d+|X|Y|M|MT)$/.exec(alleles.chrom[i]);
  const found = [];
  if (known && data.links.ucsc) {
    const ucsc = `chr${known[2].replace("MT", "M")}`;
    const short = known[2].replace(/^M$/, "MT");
    const [from, to] = [Math.max(1, data.pos[i] - 500), data.pos[i] + 500];
    found.push(["UCSC", `${data.links.ucsc}${ucsc}:${from}-${to}`]);
    if (data.links.ensembl) found.push(["Ensembl", `${data.links.ensembl}${short}:${from}-${to}`]);
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

function facts(search, i, link) {
  const { data } = search;
  const { alleles } = data;
  const texts = [
    ["identifier", [alleles.id[i], data.also[i]].filter((x) => x && x !== ".").join(", ")],
    ["reference > alternate", `${alleles.ref[i]} > ${alleles.alt[i]} (${search.kinds[i]})`],
    ["closest genes", alleles.gene?.[i] && `${alleles.gene[i]}${distance(alleles.away?.[i])}`],
    ["in a peak", alleles.peak?.[i]],
    ["in peaks of", alleles.peaks?.[i]],
    ["motif hits", alleles.motifs?.[i]],
    ["enhancer of", alleles.linked?.[i]],
    ["p over all experiments", data.has_max_p && two(data.max_p[i])],
  ];
  const rows = texts
    .filter(([, text]) => text)
    .map(([name, text]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text)));
  const near = search.neighbours(i).slice(0, 40);
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

function distance(away) {
  if (!away) return "";
  return ` (the first ${away >= 1000 ? `${(away / 1000).toFixed(1)} kb` : `${away} bp`} away)`;
}

// All experiments, from the largest effect on.
function ranked(search, i) {
  const { data } = search;
  const answers = search.answers(i);
  const all = i < data.n_whole;
  const largest = Math.abs(data["best.logfc"][0]) || 1;
  const each = answers.map((one) => search.folds(i, one.e));
  const furthest = Math.max(...each.flat().map(Math.abs), ...answers.map((one) => Math.abs(one.logfc)));
  const about = data.experiments;
  const columns = [
    ["experiment", true, (one) => el("th", { scope: "row" }, broken(about[one.e].name))],
    ["biosample", about.some((one) => one.biosample), (one) => about[one.e].biosample],
    ["assay", about.some((one) => one.assay), (one) => about[one.e].assay],
    ["log2 FC", true, (one) => effect(one.logfc, largest), "number"],
    ["p", data.has_p, (one) => two(one.p), "number"],
    ["folds agree", true, (one) => `${one.agree} of ${data.n_folds[one.e]}`, "number"],
    ["each fold", data.n_each > 1 && i < data.n_folded, (one, k) => strip(each[k], one.logfc, furthest)],
    ["JSD", true, (one) => three(one.jsd), "number"],
  ].filter(([, has]) => has);
  const head = columns.map(([name, , , kind]) => el("th", { scope: "col", class: kind }, name));
  const body = answers.map((one, k) => {
    const cells = columns.map(([name, , content, kind]) => {
      const found = content(one, k);
      return found?.matches?.("td, th") ? found : cell(name, found, kind);
    });
    return el("tr", {}, ...cells);
  });
  const table = el("table", { class: "cards" }, el("thead", {}, el("tr", {}, ...head)));
  table.append(el("tbody", {}, ...body));
  const more = [];
  if (!all) more.push(el("p", {}, "scores.parquet has the others."));
  if (data.n_each > 1 && i >= data.n_folded) {
    more.push(el("p", { class: "limit" }, "folds.parquet has what each fold says."));
  }
  return {
    heading: all ? "In all experiments" : "In the experiment of its largest effect",
    content: [...more, el("div", { class: "scroll" }, table)],
  };
}

// Biosamples, from the largest pooled effect on, and which of them share the first place.
function inBiosamples({ data }, i) {
  const rows = data.biosamples[i];
  if (!rows) return null;
  const largest = Math.abs(rows[0].pooled_logfc) || 1;
  const known = (x, text) => (x == null ? "" : text(x));
  const first = (one) => known(one.within_noise_of_best, (yes) => (yes ? "yes" : "no")) || "not known";
  const columns = [
    ["rank", true, (one) => String(one.rank), "number"],
    ["biosample", true, (one) => one.biosample],
    ["organ", rows.some((one) => one.organ), (one) => one.organ],
    ["life stage", rows.some((one) => one.life_stage), (one) => one.life_stage],
    ["assays", rows.some((one) => one.assays), (one) => one.assays],
    ["log2 FC", true, (one) => effect(one.pooled_logfc, largest), "number"],
    ["standard error", true, (one) => known(one.pooled_se, (x) => x.toPrecision(2)), "number"],
    ["p", data.has_p, (one) => known(one.pooled_pval, two), "number"],
    ["shares first place", true, first],
  ].filter(([, has]) => has);
  const head = columns.map(([name, , , kind]) => el("th", { scope: "col", class: kind }, name));
  const body = rows.map((one) => {
    const cells = columns.map(([name, , content, kind]) => {
      const found = content(one);
      return found.matches ? found : cell(name, found, kind);
    });
    return el("tr", {}, ...cells);
  });
  const table = el("table", { class: "cards" }, el("thead", {}, el("tr", {}, ...head)));
  table.append(el("tbody", {}, ...body));
  const said =
    "Experiments pooled by biosample. Those that noise cannot tell from the first share its place; " +
    `biosamples.parquet has all of them, of this page the first ${data.biosamples_shown} at most.`;
  return { heading: "In biosamples", content: [el("p", {}, said), el("div", { class: "scroll" }, table)] };
}

// What each fold says (dots) and the answer (a line), about zero in the middle.
function strip(folds, logfc, furthest) {
  const [width, height] = [120, 14];
  const x = (value) => (width / 2) * (1 + (0.95 * value) / (furthest || 1));
  const said = `folds: ${folds.map(signed).join(", ")}`;
  const mark = (tag, attributes) => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
    return one;
  };
  const svg = mark("svg", { class: "strip", viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", said);
  const title = mark("title", {});
  title.textContent = said;
  const line = (at, kind) => mark("path", { class: kind, d: `M${x(at).toFixed(1)} 1V${height - 1}` });
  const dots = folds.map((value) =>
    mark("circle", { cx: x(value).toFixed(1), cy: height / 2, r: 2.5 }),
  );
  svg.append(title, line(0, "zero"), ...dots, line(logfc, side(logfc)));
  return svg;
}

// The figure, or why there is none.
function profiles({ data }, i) {
  const heading = "Profiles and attributions";
  const figure = get(`figure-${data.allele_id[i]}`);
  const image = figure?.querySelector("img");
  if (!image) {
    const why = data.figures
      ? `Drawn for the ${number(data.figures)} alleles with the largest effects; this one is ` +
        `number ${number(i + 1)}. A larger n under top draws more.`
      : "None were drawn in this run; top: {n: 20} draws those of the 20 largest effects.";
    return { heading, content: [el("p", {}, why)] };
  }
  const back = el("a", { href: `#figure-${data.allele_id[i]}` }, "among all profiles");
  const hint = el("span", { class: "narrow" }, "Scroll sideways for more. ");
  const drawn = el("div", { class: "scroll" }, el("img", { src: image.src, alt: image.alt }));
  const caption = el("figcaption", { class: "screen" }, hint, back);
  const words = el("p", {}, figure.querySelector(".words")?.textContent || "");
  return { heading, content: [words, el("figure", {}, drawn, caption)] };
}
