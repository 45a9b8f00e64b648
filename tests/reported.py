"""The tables of a run that never was, and the report of them."""

import csv
import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veff import report
from veff.inputs import reference


class Run:
    """The tables of a run that never was: `n` scored alleles, one that was not."""

    def __init__(
        self,
        folder,
        n,
        experiments=("liver", "heart"),
        name=str,
        p=True,
        chrom="1",
        annotations=None,
        about=None,
        alts=lambda i: "C",
    ):
        rng = np.random.default_rng(0)
        self.folder, self.n = folder, n
        pos = self.pos = np.sort(rng.integers(1, 9_000_000, n + 1))
        ids = np.arange(n + 1)
        status = np.where(ids < n, "ok", "symbolic")
        base = {
            "allele_id": ids,
            "record": ids,
            "chrom": pa.array([chrom] * (n + 1)),
            "pos": pos,
            "id": pa.array([name(f"rs{i}") for i in range(n + 1)]),
            "ref": pa.array([name("A")] * (n + 1)),
            "alt": pa.array([name(alts(i)) for i in range(n + 1)]),
            "status": pa.array(status),
        }
        scored = pa.array(np.where(ids < n, ids, -1), mask=ids == n)
        reasons = pa.array([""] * n + [name("a symbolic allele")])
        self.write("alleles", base | {"reason": reasons, "scored_as": scored})
        self.logfc = self.alike(rng.standard_t(3, (len(experiments), n)) * 0.1)
        folds = self.logfc[:, None] + rng.normal(0, 0.05, (len(experiments), 2, n))
        self.folds = folds
        self.agree = (np.sign(folds) == np.sign(self.logfc)[:, None]).sum(1)
        keys = {key: base[key][:n] for key in ("allele_id", "chrom", "pos", "id", "ref", "alt")}
        self.parts(
            "scores", keys, [(name(e), self.scores(i, p)) for i, e in enumerate(experiments)]
        )
        per_fold = (
            (name(e), {"logfc": folds[i, k], "fold": np.full(n, k, np.int32)})
            for i, e in enumerate(experiments)
            for k in (0, 1)
        )
        self.parts("folds", keys, per_fold)
        best = np.abs(self.logfc).argmax(0) if n else np.zeros(0, int)
        largest = np.append(self.logfc[best, np.arange(n)], 0)
        mask = ids == n
        names = [name(experiments[i]) for i in best] + [None]
        summary = {
            "max_experiment": pa.array(names, pa.string()),
            "max_logfc": pa.array(largest, mask=mask),
            "max_jsd": pa.array(np.abs(largest) / 2, mask=mask),
        }
        self.write("summary", base | summary | (annotations or {}))
        self.largest = np.abs(largest[:n])
        models = [
            {
                "experiment": name(e),
                "fold": k,
                "checkpoint": f"{name(e)}.{k}",
                "sha256": f"{i}{k}" * 32,
            }
            for i, e in enumerate(experiments)
            for k in (0, 1)
        ]
        self.provenance(models, name)
        about = about or {}
        lines = [["experiment", "biosample", "assay"]]
        lines += [[name(e), *about.get(e, ("", ""))] for e in experiments]
        with self.path("experiments.tsv").open("w", newline="") as handle:
            csv.writer(handle, delimiter="\t", lineterminator="\n").writerows(lines)

    def alike(self, logfc):
        """The effects, [experiments, alleles]; a run of other ones says which."""
        return logfc

    def scores(self, i, p):
        values = {
            "logfc": self.logfc[i],
            "jsd": np.abs(self.logfc[i]) / 2,
            "folds_agree": self.agree[i].astype(np.int32),
            "n_folds": np.full(self.n, 2, np.int32),
        }
        return values | ({"abs_logfc.pval": np.full(self.n, 0.25)} if p else {})

    def path(self, name):
        return self.folder / name

    def write(self, name, columns):
        pq.write_table(pa.table(columns), self.path(f"{name}.parquet"))

    def parts(self, name, keys, parts):
        """A table of a row group a part, none of them in memory with another."""
        group = {"group": np.zeros(self.n, np.int32)}
        tables = (
            pa.table(keys | {"experiment": pa.array([e] * self.n, pa.string())} | group | values)
            for e, values in parts
        )
        first = next(tables)
        with pq.ParquetWriter(self.path(f"{name}.parquet"), first.schema) as writer:
            for table in itertools.chain([first], tables):
                writer.write_table(table)

    def provenance(self, models, name):
        file = {"path": name("some.vcf"), "sha256": "0" * 64}
        tuned = {"benchmarks": 0, "jobs": 4, "autotune_hits": 8, "autotune_misses": 0}
        record = {
            "versions": {"torch": "2"},
            "config": {"variants": name("some.vcf")},
            "reference": file | {"assembly": "hg38"},
            "variants": file,
            "models": models,
            "alleles": {"statuses": {"ok": self.n, "symbolic": 1, "too_long": 0}},
            "setup": {"b1": {"gpu": "NVIDIA H200", "node": "warm", "seed": "ab"}},
            "store": {"found": 0, "scored": 0, "devices": {}},
            "scoring": {
                "jobs": 4,
                "devices": {"NVIDIA H200": 4},
                "seconds": 5.0,
                "allele_models_per_s": 9.0,
                "autotune": tuned | {"repaired": 0},
            },
        }
        self.path("provenance.json").write_text(json.dumps(record))

    def report(self, length=4, contig="1", **more):
        """The report, on a reference whose first contig has so many bases."""
        fasta = self.path("genome.fa")
        fasta.write_text(f">{contig}\n{'ACGT' * (length // 4)}\n>2\nACGT\n")
        reference.build(fasta, self.path("reference"))
        tables = ("alleles", "summary", "scores", "folds")
        report.build(
            self.path("report.html"),
            **{name: self.path(f"{name}.parquet") for name in tables},
            provenance=self.path("provenance.json"),
            experiments=self.path("experiments.tsv"),
            reference=reference.Reference.open(self.path("reference")),
            **more,
        )
        return self.path("report.html")
