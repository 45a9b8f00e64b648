"""What are the columns of the outputs: type, unit, meaning?"""

import pyarrow as pa

ALLELE = {
    "allele_id": (pa.int64(), "number of the allele in the input, from 0"),
    "chrom": (pa.string(), "contig, as the input names it"),
    "pos": (pa.int64(), "position, 1-based, as in the input"),
    "id": (pa.string(), "identifier, as in the input"),
    "ref": (pa.string(), "reference allele, as in the input"),
    "alt": (pa.string(), "alternate allele, as in the input"),
}
EXPERIMENT = {
    "experiment": (pa.string(), "experiment, as the model sheet names it"),
    "fold": (pa.int32(), "number of the checkpoint within its experiment, from 0"),
    "group": (pa.int32(), "signal group of the model, from 0"),
    "n_padded": (pa.int32(), "bp of the reference window past the contig's end, read as N"),
}
SCORES = {
    "ref_counts": (pa.float64(), "reads over the output window, reference: max(expm1(h), 0)"),
    "alt_counts": (pa.float64(), "reads over the output window, alternate: max(expm1(h), 0)"),
    "logfc": (pa.float64(), "log2((alt_counts + 1) / (ref_counts + 1))"),
    "logfc_501": (pa.float64(), "the same over the central 501 bp of the output"),
    "jsd": (pa.float64(), "Jensen-Shannon distance, base 2, of the two profiles: 0 to 1"),
    "abs_logfc": (pa.float64(), "abs(logfc)"),
    "logfc_x_jsd": (pa.float64(), "logfc * jsd"),
    "abs_logfc_x_jsd": (pa.float64(), "abs(logfc) * jsd"),
}


def schema(*groups: dict, without: str | None = None) -> pa.Schema:
    """The columns of these groups; each field's metadata says what it holds."""
    fields = {name: field for group in groups for name, field in group.items() if name != without}
    return pa.schema(
        [
            pa.field(name, kind, metadata={"description": description})
            for name, (kind, description) in fields.items()
        ]
    )


ANSWERS = schema(ALLELE, EXPERIMENT, SCORES, without="fold")
FOLDS = schema(ALLELE, EXPERIMENT, SCORES)
