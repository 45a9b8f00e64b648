"""What are the columns of the outputs: type, meaning, unit, formula?"""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Column(NamedTuple):
    kind: pa.DataType
    description: str
    unit: str = ""
    formula: str = ""


ALLELE = {
    "allele_id": Column(pa.int64(), "number of the allele in the input, from 0"),
    "chrom": Column(pa.string(), "contig, as the input names it"),
    "pos": Column(pa.int64(), "position, 1-based, as in the input", "bp"),
    "id": Column(pa.string(), "identifier, as in the input"),
    "ref": Column(pa.string(), "reference allele, as in the input"),
    "alt": Column(pa.string(), "alternate allele, as in the input"),
}
EXPERIMENT = {
    "experiment": Column(pa.string(), "experiment, as the model sheet names it"),
    "fold": Column(pa.int32(), "number of the checkpoint within its experiment, from 0"),
    "group": Column(pa.int32(), "signal group of the model, from 0"),
    "n_padded": Column(pa.int32(), "window bases beyond the contig's end, filled with N", "bp"),
}
# h: the head's log(1 + count) over the output; p: the profile, summing to 1.
SCORES = {
    "ref_counts": Column(
        pa.float64(), "over the output window, reference", "reads", "max(expm1(h_ref), 0)"
    ),
    "alt_counts": Column(
        pa.float64(), "over the output window, alternate", "reads", "max(expm1(h_alt), 0)"
    ),
    "logfc": Column(
        pa.float64(), "change of counts over the output window", "log2", "(h_alt - h_ref) / ln(2)"
    ),
    "logfc_501": Column(
        pa.float64(),
        "change of counts over the central 501 bp of the output",
        "log2",
        "log2((S_alt + 1) / (S_ref + 1)), S = sum of p over the 501 bp * counts",
    ),
    "jsd": Column(
        pa.float64(),
        "Jensen-Shannon distance of the two profiles, in reference coordinates",
        "0 to 1",
        "sqrt((KL2(p_ref, m) + KL2(p_alt, m)) / 2), m = (p_ref + p_alt) / 2",
    ),
    "abs_logfc": Column(pa.float64(), "size of the change of counts", "log2", "abs(logfc)"),
    "logfc_x_jsd": Column(pa.float64(), "product", "log2", "logfc * jsd"),
    "abs_logfc_x_jsd": Column(pa.float64(), "product", "log2", "abs(logfc) * jsd"),
}
TOWARDS_EFFECT = {
    "logfc_effect": Column(
        pa.float64(),
        "logfc towards the effect allele, where the input says which one that is",
        "log2",
        "logfc if the effect allele is ALT, -logfc if it is REF",
    )
}
SPREAD = {
    **{
        f"{name}_sd": Column(
            pa.float64(),
            f"sample standard deviation of {name} over the folds; missing for one fold",
            column.unit,
        )
        for name, column in SCORES.items()
    },
    "folds_agree": Column(pa.int32(), "folds whose logfc has the sign of this logfc", "folds"),
    "n_folds": Column(pa.int32(), "checkpoints of the experiment", "folds"),
}

QUANTILE = "max(mean(counts of the reference set < x), 1 / n)"
QUANTILES = {
    "ref_quantile": Column(
        pa.float64(),
        "of ref_counts in the reference set: the experiment's peaks or its null's windows",
        "0 to 1",
        QUANTILE,
    ),
    "alt_quantile": Column(
        pa.float64(),
        "of alt_counts in the reference set: the experiment's peaks or its null's windows",
        "0 to 1",
        QUANTILE,
    ),
    "active_allele_quantile": Column(
        pa.float64(), "the larger of the two", "0 to 1", "max(ref_quantile, alt_quantile)"
    ),
}
PRODUCTS = {
    f"{name}_x_active_allele_quantile": Column(
        pa.float64(), "product", SCORES[name].unit, f"{name} * active_allele_quantile"
    )
    for name in ("logfc", "abs_logfc", "jsd", "logfc_x_jsd", "abs_logfc_x_jsd")
}
# Of which, under one experiment, hardly a value comes twice.
DISTINCT = ["allele_id", "pos", *SCORES, *(f"{name}_sd" for name in SCORES), *PRODUCTS]
JUDGED = [name for name in (*SCORES, *PRODUCTS) if not name.endswith("_counts")]
# Of a score without direction only large values are unusual.
ONE_SIDED = [name for name in JUDGED if name.startswith(("abs_", "jsd"))]
ONE_SIDED_P = "(1 + #{null >= observed}) / (1 + n)"
TWO_SIDED_P = "min(1, 2 * min(1 + #{null >= observed}, 1 + #{null <= observed}) / (1 + n))"
NULL = {
    **QUANTILES,
    **PRODUCTS,
    **{
        f"{name}.pval": Column(
            pa.float64(),
            f"p-value of {name} under the experiment's null of the allele's class",
            "0 to 1",
            ONE_SIDED_P if name in ONE_SIDED else TWO_SIDED_P,
        )
        for name in JUDGED
    },
    "effect_percentile": Column(
        pa.float64(),
        "share of the experiment's null of the allele's class with as small an effect on the "
        "central 501 bp",
        "0 to 1",
        "max(#{abs(null logfc_501) <= abs(logfc_501)}, 1) / n",
    ),
}
FDR = {
    "significant_in_run": Column(
        pa.bool_(),
        "abs_logfc.pval below the false discovery rate among all scored alleles of this run and "
        "experiment: depends on which alleles share the run",
        "",
        "Benjamini-Hochberg",
    )
}

N_GENES = 3
NONE = "-"  # in place of a list of names that is empty
GENES = {}
for k in range(1, N_GENES + 1):
    GENES[f"closest_gene_{k}"] = Column(
        pa.string(),
        f"number {k} of the closest genes; of those equally far, first which starts first",
    )
    GENES[f"gene_distance_{k}"] = Column(
        pa.int64(), "of that gene from REF; 0 where they overlap, 1 where they touch", "bp"
    )
GENES |= {
    "nearest_tss": Column(
        pa.string(),
        "the gene whose start site, its 5' end, is nearest to REF; of those equally near, which "
        "lies first; missing where no gene of the contig has a strand",
    ),
    "tss_distance": Column(
        pa.int64(), "from that site to REF: negative upstream of it, 0 where REF holds it", "bp"
    ),
}
PEAKS = {"peak_overlap": Column(pa.bool_(), "whether REF overlaps one of annotations.peaks")}
PEAKS_OF = {
    "peak_experiments": Column(
        pa.string(),
        f"the experiments whose own peaks REF overlaps, separated by commas; {NONE} for none",
    )
}
HITS = {
    "hits_overlap": Column(pa.bool_(), "whether REF overlaps one of annotations.hits"),
    "hits_motifs": Column(
        pa.string(), f"the motifs of those hits, separated by commas; {NONE} for none"
    ),
}
LINKS = {
    "linked_genes": Column(
        pa.string(),
        "the genes of the elements in annotations.links that REF overlaps, separated by commas, "
        f"from the best score on; {NONE} for none",
    ),
    "link_scores": Column(
        pa.string(),
        "the best score of each of linked_genes, in their order, to four digits",
        "the file's own",
    ),
}


def schema(*groups: dict[str, Column], without: str | None = None) -> pa.Schema:
    """The columns of these groups; each field's metadata says what it holds."""
    fields = {name: column for group in groups for name, column in group.items()}
    fields.pop(without, None)
    return pa.schema(
        [
            pa.field(
                name,
                column.kind,
                metadata={k: v for k, v in column._asdict().items() if k != "kind" and v},
            )
            for name, column in fields.items()
        ]
    )


def towards_effect(effect_is: pa.ChunkedArray) -> pa.ChunkedArray:
    """What turns an effect of ALT into one of the effect allele: 1, -1, or missing."""
    return pc.case_when(
        pc.make_struct(pc.equal(effect_is, "alt"), pc.equal(effect_is, "ref")), 1.0, -1.0
    )


def answers(nulls: bool, fdr: bool) -> pa.Schema:
    """The columns of an experiment's answers, with what a null adds and what a cut-off adds."""
    judged = (NULL if nulls else {}, FDR if fdr else {})
    return schema(ALLELE, EXPERIMENT, SCORES, TOWARDS_EFFECT, SPREAD, *judged, without="fold")


FOLDS = schema(ALLELE, EXPERIMENT, SCORES)
