// The genome around an allele: what is predicted there, other alleles, genes, peaks. In Vega-Lite,
// which the page has anyway: igv.js 3.8 is 1.5 MB, more than all of the demo's page. For more than
// this shows there is tracks/igv.xml.

const SPANS = { "1 kb": 1000, "5 kb": 5000, "20 kb": 20000 };
const ROW = 28; // pixels of a gene or of a kind of peaks

function locus(search, i, link) {
  const { data } = search;
  const view = { span: SPANS["1 kb"], middle: data.pos[i] };
  const chart = el("div", { class: "chart", id: "locus" });
  const draw = () => drawLocus(chart, search, i, link, view);
  const choice = el("select", { id: "span" });
  choice.append(...Object.keys(SPANS).map((name) => el("option", {}, name)));
  choice.addEventListener("input", () => {
    Object.assign(view, { span: SPANS[choice.value], middle: data.pos[i] });
    draw();
  });
  const move = (by, said, sign) => {
    const button = el("button", { type: "button", "aria-label": said }, sign);
    button.addEventListener("click", () => {
      const most = data.reach - view.span / 2;
      const moved = view.middle + (by * view.span) / 2 - data.pos[i];
      view.middle = data.pos[i] + Math.max(-most, Math.min(most, moved));
      draw();
    });
    return button;
  };
  const controls = el("p", { class: "screen" }, el("label", {}, "Width ", choice), " ");
  controls.append(move(-1, "to the left", "←"), " ", move(1, "to the right", "→"));
  const said = [];
  if (!data.profiles[i]) said.push("Of this allele no profiles were made.");
  if (i >= data.n_loci && Object.keys(data.around).length) {
    said.push(
      `Genes and peaks are kept around the ${number(data.n_loci)} alleles with the largest effects.`,
    );
  }
  const limit = said.length ? el("p", { class: "limit" }, said.join(" ")) : "";
  return { heading: "Around it", content: [limit, controls, chart], draw };
}

async function drawLocus(chart, search, i, link, { span, middle }) {
  const { data } = search;
  const [first, last] = [middle - span / 2, middle + span / 2];
  const sets = { here: [{ x: data.pos[i] }], ...profileSets(data.profiles[i]) };
  const around = [[0, i], ...search.neighbours(i, data.reach)].filter(
    ([, k]) => data.pos[k] > first && data.pos[k] < last,
  );
  sets.alleles = around.map(([, k]) => ({
    x: data.pos[k],
    logfc: data["best.logfc"][k],
    allele: data.alleles.label[k],
    experiment: data.experiments[data["best.column"][k]].name,
    href: link(k),
    here: k === i,
  }));
  const best = data["best.column"][i];
  const names = { peaks: "peaks", [best]: `peaks of ${data.experiments[best].name}` };
  const near = (kind) => (i < data.n_loci ? intervals(data, kind, data.contig[i], first, last) : []);
  const kinds = Object.keys(names).filter((kind) => data.around[kind] && i < data.n_loci);
  if (data.around.genes && i < data.n_loci) {
    sets.genes = inRows(near("genes"), span);
    sets["genes.text"] = sets.genes.length
      ? sets.genes.map((one) => ({ x: Math.max(one.x, first), row: one.row, text: one.name }))
      : [{ x: first, row: 0, text: "no gene here" }];
  }
  if (kinds.length) {
    const found = kinds.map(near);
    sets.peaks = found.flatMap((rows, row) => rows.map((one) => ({ ...one, row })));
    sets["peaks.text"] = kinds.map((kind, row) => ({
      x: first,
      row,
      text: found[row].length ? names[kind] : `no ${names[kind]} here`,
    }));
  }
  const spec = structuredClone(window.specs.locus);
  const tracks = spec.vconcat.filter((track) => sets[track.name]);
  tracks.forEach((track, k) => {
    track.width = Math.max(120, chart.clientWidth - 80);
    const rows = sets[`${track.name}.text`]?.map((one) => one.row);
    if (rows) track.height = ROW * (1 + Math.max(...rows));
    // One axis, under the last.
    const axis = k === tracks.length - 1 ? { title: data.alleles.chrom[i] } : { labels: false, ticks: false, domain: false };
    for (const { encoding } of track.layer) {
      Object.assign(encoding.x.axis, axis);
      encoding.x.scale.domain = [first, last];
    }
  });
  Object.assign(spec, { vconcat: tracks, datasets: sets });
  await window.vegaEmbed(chart, spec, { renderer: "svg", actions: false });
}

// The sets of the upper two tracks, where profiles were made.
function profileSets(found) {
  if (!found) return {};
  const at = (k) => found.start + k + 1;
  const lines = ["reference", "alternate"].flatMap((allele) =>
    found[allele].map((reads, k) => ({ x: at(k), reads, allele })),
  );
  const difference = found.alternate.flatMap((reads, k) => {
    const change = reads - found.reference[k];
    return reads === null
      ? []
      : [{ x: at(k), more: Math.max(change, 0), less: Math.min(change, 0) }];
  });
  return { profile: lines, difference };
}

// The intervals of a kind that are in sight, from the middle of their first base to that of their
// last.
function intervals(data, kind, contig, first, last) {
  const { contig: contigs, start, end, name } = data.around[kind];
  const found = [];
  for (let k = 0; k < start.length; k++) {
    if (contigs[k] === contig && start[k] < last && end[k] > first) {
      const at = `${number(start[k] + 1)} to ${number(end[k])}`;
      found.push({ x: start[k] + 0.5, x2: end[k] + 0.5, name: name[k], at });
    }
  }
  return found.sort((a, b) => a.x - b.x);
}

// In as few rows as leave room for each one's name.
function inRows(found, span) {
  const ends = [];
  return found.map((one) => {
    const free = ends.findIndex((end) => end < one.x);
    const row = free < 0 ? ends.length : free;
    ends[row] = Math.max(one.x2, one.x + (span / 60) * one.name.length) + span / 60;
    return { ...one, row };
  });
}
