// What the page holds, and which of it is asked for. No element is touched here.

// The block of `veff.report.kept`: its header, with the arrays unpacked.
async function unpack(base64) {
  const packed = bytes(base64);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const kinds = { Uint32Array, Int16Array, Uint8Array, Float32Array };
  for (const [name, [kind, at, n]] of Object.entries(data.arrays)) {
    data[name] = new kinds[kind](buffer, 4 + length + at, n);
  }
  return data;
}

function bytes(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < found.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

// As people type it: no difference of case, signs or cuts.
const plain = (text) => text.toLowerCase().replaceAll("−", "-").replace(/[…·]/g, " ");
const three = (x) => (Number.isNaN(x) ? "" : x.toPrecision(3));
const bare = (contig) => contig.toLowerCase().replace(/^chr/, "");

function kindOf(ref, alt) {
  if (ref.length === 1 && alt.length === 1) return "SNV";
  if (ref.length < alt.length) return "insertion";
  return ref.length > alt.length ? "deletion" : "MNV";
}

// The names of the genes that the locus of an allele shows, by the allele's number.
function genesAround({ around, contig, pos, reach, n_loci: n }) {
  const genes = around.genes || { contig: [] };
  const bin = (at) => Math.floor(at / reach);
  const bins = new Map();
  genes.contig.forEach((on, k) => {
    for (let at = bin(genes.start[k] - reach); at <= bin(genes.end[k] + reach); at++) {
      const key = `${on}:${at}`;
      if (bins.has(key)) bins.get(key).push(k);
      else bins.set(key, [k]);
    }
  });
  return Array.from(contig.slice(0, n), (on, i) =>
    (bins.get(`${on}:${bin(pos[i])}`) || [])
      .filter((k) => genes.start[k] - reach < pos[i] && pos[i] < genes.end[k] + reach)
      .map((k) => genes.name[k])
      .join(" "),
  );
}

class Search {
  constructor(data) {
    this.data = data;
    const texts = data.alleles;
    this.kinds = texts.ref.map((ref, i) => kindOf(ref, texts.alt[i]));
    this.genes = (texts.gene || []).map(plain);
    const about = ["id", "gene", "peaks", "motifs", "linked"].filter((name) => texts[name]);
    const around = genesAround(data);
    // All that the page and the figures print of an allele, on one line.
    this.lines = texts.label.map((label, i) => {
      const one = data.experiments[data["best.column"][i]];
      const effect = three(data["best.logfc"][i]);
      const place = `${texts.chrom[i]}:${data.pos[i]} ${texts.ref[i]}>${texts.alt[i]}`;
      const said = about.map((name) => texts[name][i]).join(" ");
      return plain(
        `${label} in ${one.name}: log2 fold change ${effect} +${effect} ${place} ${said} ` +
          `${around[i] || ""} ${data.also[i] || ""} ${this.kinds[i]} ${one.short} ${one.biosample} ${one.assay}`,
      );
    });
    this.contigs = texts.chrom.map(bare);
    this.experiments = data.experiments.map((one) =>
      plain([one.name, one.short, one.biosample, one.assay].join(" ")),
    );
  }

  // The answer of an allele (i) in an experiment (e).
  answer(i, e) {
    const { data } = this;
    const at = i < data.n_whole ? e * data.n_whole + i : -1;
    const from = (name) => (at < 0 ? data[`best.${name}`][i] : data[`whole.${name}`][at]);
    return { i, e, logfc: from("logfc"), jsd: from("jsd"), p: from("p"), agree: from("agree") };
  }

  // All answers of an allele that the page has, from the largest effect on.
  answers(i) {
    const { data } = this;
    const columns = i < data.n_whole ? data.experiments.keys() : [data["best.column"][i]];
    return [...columns]
      .map((e) => this.answer(i, e))
      .filter((one) => !Number.isNaN(one.logfc))
      .sort((a, b) => Math.abs(b.logfc) - Math.abs(a.logfc));
  }

  // What each fold says of an allele in an experiment; nothing where the page does not have it.
  folds(i, e) {
    const { n_folded: n, n_each: each, "folds.logfc": values } = this.data;
    if (i >= n) return [];
    return Array.from({ length: each }, (_, k) => values[(e * each + k) * n + i]).filter(
      (x) => !Number.isNaN(x),
    );
  }

  // How far away the alleles are that may share a window of a model, and which: [bp, number].
  neighbours(i, reach = 1000) {
    const near = [];
    for (let k = 0; k < this.data.n; k++) {
      const away = this.data.pos[k] - this.data.pos[i];
      if (k !== i && Math.abs(away) <= reach && this.data.contig[k] === this.data.contig[i]) {
        near.push([away, k]);
      }
    }
    return near.sort(([a], [b]) => a - b);
  }

  // For each allele that is asked for, which experiment answers: that of its largest effect of
  // those that are asked for. `query` is {text, gene, experiment, biosample, assay, kind, p,
  // size, agree}, where what is empty asks for nothing.
  find(query) {
    const { data } = this;
    const region = /^(\S+):([\d,]+)-([\d,]+)$/.exec(query.text.trim());
    const [contig, from, to] = region
      ? [bare(region[1]), ...region.slice(2).map((n) => Number(n.replaceAll(",", "")))]
      : [];
    const words = region ? [] : plain(query.text).split(/\s+/).filter(Boolean).slice(0, 30);
    const asked = data.experiments.map(
      (one) =>
        (!query.experiment || one.name === query.experiment) &&
        (!query.biosample || one.biosample === query.biosample) &&
        (!query.assay || one.assay === query.assay),
    );
    // A word that is not in an allele's line may name experiments: then these are asked for.
    const named = words.map((word) => this.experiments.map((text) => text.includes(word)));
    const isName = named.map((found) => found.includes(true));
    const chosen = new Map();
    const columns = (key) => {
      if (!chosen.has(key)) {
        const all = asked.map((ok, e) => ok && named.every((is, w) => !(key & (1 << w)) || is[e]));
        chosen.set(key, { all, whole: !all.includes(false), list: indices(all) });
      }
      return chosen.get(key);
    };
    const gene = plain(query.gene || "");
    const numeric = query.p !== "" || query.size !== "" || query.agree;
    const passesBest = this.test("best", query);
    const passesWhole = this.test("whole", query);
    const { n, n_whole: nWhole } = data;
    const effects = data["whole.logfc"];
    const rows = new Int32Array(n);
    const answers = new Int16Array(n);
    let m = 0;
    for (let i = 0; i < n; i++) {
      if (region && !(this.contigs[i] === contig && data.pos[i] >= from && data.pos[i] <= to)) {
        continue;
      }
      if (query.kind && this.kinds[i] !== query.kind) continue;
      if (gene && !this.genes[i].includes(gene)) continue;
      let key = 0;
      let has = true;
      for (let w = 0; w < words.length && has; w++) {
        if (this.lines[i].includes(words[w])) continue;
        if (isName[w]) key |= 1 << w;
        else has = false;
      }
      if (!has) continue;
      const { all, whole, list } = columns(key);
      let e = data["best.column"][i];
      if (i >= nWhole) {
        if (!all[e]) continue;
        if (numeric && !passesBest(i, e)) continue;
      } else if (!whole || numeric) {
        e = -1;
        let largest = -1;
        for (const one of list) {
          const here = Math.abs(effects[one * nWhole + i]);
          if (here > largest && (!numeric || passesWhole(one * nWhole + i, one))) {
            largest = here;
            e = one;
          }
        }
        if (e < 0) continue;
      }
      rows[m] = i;
      answers[m++] = e;
    }
    return { rows: rows.subarray(0, m), answers: answers.subarray(0, m), asked: columns(0).list };

    function indices(flags) {
      return [...flags.keys()].filter((e) => flags[e]);
    }
  }

  // Whether the answer at a place of the arrays, which is of an experiment (e), is large, unusual
  // and sure enough.
  test(from, query) {
    const { n_folds: nFolds } = this.data;
    const [logfc, p, agree] = ["logfc", "p", "agree"].map((name) => this.data[`${from}.${name}`]);
    const size = Number(query.size);
    const most = query.p === "" ? Infinity : Number(query.p);
    const { agree: all } = query;
    return (at, e) =>
      (most === Infinity || p[at] <= most) &&
      Math.abs(logfc[at]) >= size &&
      (!all || agree[at] === nFolds[e]);
  }

  // A number of what was found, by its place there.
  value({ rows, answers }, name) {
    const { n_whole: n, [`best.${name}`]: best, [`whole.${name}`]: whole } = this.data;
    return (k) => (rows[k] < n ? whole[answers[k] * n + rows[k]] : best[rows[k]]);
  }

  // The places of what was found in the order of a column, from the smallest on or the largest.
  order(found, column, descending) {
    const { data } = this;
    const { rows, answers } = found;
    const values = {
      allele: (k) => this.places[rows[k]],
      experiment: (k) => data.experiments[answers[k]].name,
      id: (k) => data.alleles.id[rows[k]],
      gene: (k) => data.alleles.gene[rows[k]],
      max_p: (k) => data.max_p[rows[k]],
    };
    if (column === "size") {
      const effect = this.value(found, "logfc");
      values.size = (k) => Math.abs(effect(k));
    }
    const value = values[column] || this.value(found, column);
    const keys = Array.from(rows, (_, k) => value(k));
    const places = Uint32Array.from(keys.keys());
    // What has no value comes last, whichever the direction; of equals first the larger effect.
    const last = (x) => x === "" || Number.isNaN(x);
    const sign = descending ? -1 : 1;
    return places.sort((a, b) => {
      const x = keys[a];
      const y = keys[b];
      if (x === y || (last(x) && last(y))) return a - b;
      if (last(x) || last(y)) return last(x) ? 1 : -1;
      return x < y ? -sign : sign;
    });
  }

  // The rank of each allele along the genome.
  get places() {
    const { chrom } = this.data.alleles;
    const { pos } = this.data;
    const contigs = [...new Set(chrom)].sort(new Intl.Collator("en", { numeric: true }).compare);
    const index = new Map(contigs.map((name, i) => [name, i]));
    const order = Uint32Array.from(chrom.keys());
    const key = Float64Array.from(chrom, (name, i) => index.get(name) * 2 ** 32 + pos[i]);
    order.sort((a, b) => key[a] - key[b]);
    const ranks = new Uint32Array(order.length);
    order.forEach((i, rank) => (ranks[i] = rank));
    Object.defineProperty(this, "places", { value: ranks });
    return ranks;
  }

  // Alleles without scores that have all the words.
  unscored(text) {
    const words = plain(text).split(/\s+/).filter(Boolean);
    return this.data.unscored.filter((row) => {
      const line = plain(`${row.chrom}:${row.pos} ${row.ref}>${row.alt} ${row.id}`);
      return words.length && words.every((word) => line.includes(word));
    });
  }
}
