"""Are the motifs that the demo's variants were planted in named right, and no others?"""

import csv

import pandas as pd

from project import DEMO

SIGN = {"breaks": -1, "creates": 1}
SAID = {"gained": 1, "strengthened": 1, "lost": -1, "weakened": -1}


def truth() -> dict[int, dict]:
    """The rows of `truth.tsv`, by `allele_id`."""
    with open(DEMO / "truth.tsv", newline="") as file:
        return dict(enumerate(csv.DictReader(file, delimiter="\t")))


def right_and_false(rows: pd.DataFrame) -> tuple[dict, dict]:
    """Of the planted alleles, which have the right motif and direction in their first row; of the
    others, which have a verdict there. Both as {kind of variant: [bool]}.

    `rows` are in the order of `motifs.parquet`; an allele without a row has no verdict.
    """
    firsts = rows.drop_duplicates("allele_id").set_index("allele_id")
    right, false = {"SNV": [], "indel": []}, {"SNV": [], "indel": []}
    for number, planted in truth().items():
        if planted["class"] == "not_scored":
            continue
        kind = "SNV" if len(planted["ref"]) == len(planted["alt"]) else "indel"
        one = firsts.loc[number] if number in firsts.index else {"verdict": "none"}
        if planted["class"] == "spares":
            false[kind].append(one["verdict"] != "none")
        else:
            said = SAID.get(one["verdict"], 0) == SIGN[planted["class"]]
            right[kind].append(said and one["motif"] == planted["motif"])
    return right, false
