"""Stacking the parts: planted scores whose value is their own allele and experiment."""

import gzip
import itertools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veff import tables
from veff.errors import InputError
from veff.models.biosamples import Biosample
from veff.outputs import provenance
from veff.outputs.collect import by_bundle, check, collect
from veff.scoring import columns


def planted(allele, experiment, fold=0, group=0):
    """A score that no other row has."""
    return 1000.0 * experiment + 100 * fold + 10 * group + allele / 64


@pytest.fixture
def run(tmp_path):
    """Collects a run of two bundles (two and one experiments) over the alleles given."""
    scored_as = [0, None, 2, 0, 4]  # allele 1 was not scored, allele 3 repeats allele 0
    alleles = tmp_path / "alleles.parquet"
    n = len(scored_as)
    keys = {name: [f"{name}{i}" for i in range(n)] for name in ("chrom", "id", "ref", "alt")}
    table = {"allele_id": range(n), "record": range(n), "pos": range(n), **keys}
    table["status"] = ["ok", "symbolic", "ok", "duplicate", "ok"]
    table |= {"scored_ref": ["A"] * n, "scored_alt": ["C", "C", "C", "C", "CTT"]}
    table["effect_is"] = ["alt", "alt", "ref", "ref", "unknown"]
    table["scored_as"] = pa.array(scored_as, pa.int64())
    pq.write_table(pa.table({k: pa.array(v) for k, v in table.items()}), alleles)

    def part(kind, name, experiments, ids, folds, groups):
        pieces = []
        for experiment in experiments:
            rows = list(itertools.product(range(folds), range(groups), ids))
            values = [planted(i, experiment, f, g) for f, g, i in rows]
            piece = {
                "allele_id": pa.array([i for _, _, i in rows], pa.int64()),
                "experiment": pa.array([f"e{experiment}"] * len(rows), pa.string()),
                "fold": pa.array([f for f, _, _ in rows], pa.int32()),
                "group": pa.array([g for _, g, _ in rows], pa.int32()),
                "n_padded": pa.array(np.zeros(len(rows), np.int32)),
            }
            piece |= {score: pa.array(values, pa.float64()) for score in columns.SCORES}
            piece |= {
                name: pa.array(values, pa.float64()).cast(column.kind, safe=False)
                for name, column in columns.SPREAD.items()
            }
            piece["n_folds"] = pa.array([2] * len(rows), pa.int32())
            pieces.append(pa.table(piece))
        path = tmp_path / f"{kind}.{name}.parquet"
        tables.write_parquet(path, pieces)
        return path

    def of(
        chunks=((4, 2), (0,)),
        groups=1,
        order=("e0", "e1", "e2"),
        partitioned=False,
        chunks_of_e2=None,
        **more,
    ):
        samples = [Biosample("liver", ("e0", "e2"), ("", "")), Biosample("e1", ("e1",), ("",))]
        bundles = ((0, 1), chunks), ((2,), chunks_of_e2 or chunks)
        answers, folds = (
            [
                [part(kind, f"{c}.{b}", bundle, ids, n, groups) for c, ids in enumerate(own)]
                for b, (bundle, own) in enumerate(bundles)
            ]
            for kind, n in (("answers", 1), ("folds", 2))
        )
        outputs = {"scores": "s.parquet", "folds_out": "f.parquet"}
        outputs |= {"biosamples_out": "biosamples.parquet"}
        outputs |= {"summary": "summary.parquet", "summary_tsv": "summary.tsv.gz"}
        outputs = {key: tmp_path / name for key, name in outputs.items()}
        more |= {"partitioned": partitioned, "samples": samples}
        collect(alleles, answers, folds, list(order), **more, **outputs)
        return outputs

    return of


def test_each_allele_has_its_own_score_under_each_experiment_in_input_order(run):
    rows = pq.read_table(run()["scores"]).to_pylist()
    expected = [
        (f"e{experiment}", allele, f"alt{allele}", planted(scored_as, experiment))
        for experiment in range(3)
        for allele, scored_as in ((0, 0), (2, 2), (3, 0), (4, 4))
    ]
    assert [(r["experiment"], r["allele_id"], r["alt"], r["jsd"]) for r in rows] == expected


def test_experiments_come_in_the_order_of_the_sheet_whatever_their_bundle(run):
    straight, other = (
        pq.read_table(run(order=order)["scores"]).to_pylist()
        for order in (("e0", "e1", "e2"), ("e2", "e0", "e1"))
    )
    assert other == straight[8:] + straight[:8]


@pytest.mark.parametrize("chunks", [((0,), (2, 4)), ((2, 0, 4),), ((4, 2, 0),)])
def test_experiments_may_have_been_scored_in_different_orders_of_the_alleles(run, chunks):
    expected, found = (run(chunks_of_e2=own)["summary"].read_bytes() for own in (None, chunks))
    assert found == expected


def test_an_allele_lost_under_one_experiment_alone_is_an_error(run):
    with pytest.raises(RuntimeError, match="scored 2 alleles, expected 3"):
        run(chunks_of_e2=((4, 2),))


def test_a_folder_with_a_file_an_experiment_has_the_same_rows(run):
    whole = pq.read_table(run()["scores"])
    folder = run(partitioned=True)["scores"]
    assert [path.parent.name for path in sorted(folder.rglob("*.parquet"))] == [
        "experiment=e0",
        "experiment=e1",
        "experiment=e2",
    ]
    read = pd.read_parquet(folder).astype({"experiment": str})
    order = ["experiment", "allele_id", "group"]
    expected = whole.to_pandas().sort_values(order, ignore_index=True)
    read = read[expected.columns].sort_values(order, ignore_index=True)
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_an_experiment_with_any_name_has_a_file_of_its_own(tmp_path):
    schema = pa.schema({"experiment": pa.string(), "x": pa.int64()})
    names = ["a b", "a/b", "..", "ä=%2F", "1"]
    with tables.parquet(tmp_path / "scores", schema, partitioned=True) as write:
        for number, name in enumerate(names):
            write(pa.table({"experiment": [name], "x": [number]}, schema=schema))
    read = pd.read_parquet(tmp_path / "scores").sort_values("x")
    assert read["experiment"].tolist() == names
    read = tables.dataset(tmp_path / "scores").to_table().sort_by("x")
    assert read["experiment"].to_pylist() == names


def test_folds_are_kept_apart(run):
    rows = pq.read_table(run()["folds_out"]).to_pylist()
    seen = {(r["experiment"], r["allele_id"], r["fold"]): r["jsd"] for r in rows}
    assert len(seen) == len(rows) == 3 * 4 * 2
    assert seen["e1", 3, 1] == planted(0, 1, fold=1)


def test_signal_groups_are_kept_apart(run):
    rows = pq.read_table(run(groups=2)["scores"]).to_pylist()
    seen = {(r["experiment"], r["allele_id"], r["group"]): r["jsd"] for r in rows}
    assert len(seen) == len(rows) == 3 * 4 * 2
    assert seen["e2", 4, 1] == planted(4, 2, group=1)


def test_the_number_of_chunks_changes_no_byte(run):
    first = {name: path.read_bytes() for name, path in run().items()}
    again = run(chunks=((4,), (0,), (2,)))
    assert {name: path.read_bytes() for name, path in again.items()} == first


class Nulls(dict):
    """Nulls by experiment and class, as `null.Nulls` gives them."""

    classes = ("snv", "ins_1_5")

    def identity(self, key):
        drawn = {"seed": 0, "scheme": "uniform", "regions_sha256": None, "input_length": 2114}
        drawn |= {"n": len(self[key]), "reference_sha256": "abc"}
        return drawn | ({} if key[1] == "snv" else {"class": key[1]})


@pytest.fixture
def nulls():
    """The nulls of e0, e1 and e2: as many as 20 of each score, larger for the insertion's class,
    the same for all."""
    found = Nulls()
    for kind, largest in (("snv", 3000), ("ins_1_5", 9000)):
        values = np.linspace(0, largest, 20)
        table = {"group": pa.array([0] * 20, pa.int32()), "reference_counts": values}
        null = pa.table(table | dict.fromkeys(columns.SCORES, values))
        found |= {(name, kind): null for name in ("e0", "e1", "e2")}
    return found


def test_judged_by_nulls_the_number_of_chunks_changes_no_byte(run, nulls):
    first = {name: path.read_bytes() for name, path in run(nulls=nulls, fdr=0.2).items()}
    again = run(chunks=((4,), (0,), (2,)), nulls=nulls, fdr=0.2)
    assert {name: path.read_bytes() for name, path in again.items()} == first


def test_a_duplicate_has_the_p_value_of_the_allele_that_it_repeats(run, nulls):
    rows = pq.read_table(run(nulls=nulls, fdr=0.2)["scores"])
    assert rows.schema.names == columns.answers(nulls=True, fdr=True).names
    for name in ("abs_logfc.pval", "effect_percentile", "significant_in_run"):
        by_allele = dict(zip(rows["allele_id"].to_pylist(), rows[name].to_pylist(), strict=True))
        assert by_allele[3] == by_allele[0]


def test_an_allele_is_judged_by_the_null_of_its_class(run, nulls):
    outputs = run(nulls=nulls)
    for row in pq.read_table(outputs["scores"]).to_pylist():
        kind = "ins_1_5" if row["allele_id"] == 4 else "snv"
        as_large = np.sum(nulls[row["experiment"], kind]["abs_logfc"].to_numpy() >= row["logfc"])
        assert row["abs_logfc.pval"] == (1 + as_large) / 21
        active = nulls[row["experiment"], "snv"]["reference_counts"].to_numpy()
        assert row["ref_quantile"] == max(np.mean(active < row["ref_counts"]), 1 / 20)
    rows = pq.read_table(outputs["summary"]).to_pylist()
    assert [row["max_pval"] for row in rows] == [
        (1 + np.sum(np.linspace(0, largest, 20) >= row["max_logfc"])) / 21 if largest else None
        for row, largest in zip(rows, (3000, None, 3000, 3000, 9000), strict=True)
    ]


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_file_says_which_models_made_it(run, partitioned):
    of_experiments = {name: {"models_sha256": [name * 3]} for name in ("e0", "e1", "e2")}
    metadata = {"ensemble": "mean_score", "experiments": of_experiments}
    outputs = run(partitioned=partitioned, metadata=metadata)
    for table in ("scores", "folds_out"):
        path = outputs[table]
        path = path / "experiment=e1/part.parquet" if partitioned else path
        own = {"e1": of_experiments["e1"]} if partitioned else of_experiments
        said = json.loads(pq.read_schema(path).metadata[b"veff"])
        assert said == metadata | {"experiments": own}
    said = json.loads(pq.read_schema(outputs["summary"]).metadata[b"veff"])
    assert said == metadata


def test_the_tsv_says_what_the_parquet_says(run):
    outputs = run()
    tsv = outputs["scores"].with_name("s.tsv.gz")
    tables.parquet_to_tsv(outputs["scores"], tsv)
    with gzip.open(tsv, "rt") as handle:
        header, *lines = handle.read().splitlines()
    table = pq.read_table(outputs["scores"])
    assert header.split("\t") == table.column_names
    for line, row in zip(lines, table.to_pylist(), strict=True):
        assert line.split("\t")[:7] == [str(row[name]) for name in table.column_names[:7]]
        assert float(dict(zip(row, line.split("\t"), strict=True))["jsd"]) == row["jsd"]


@pytest.mark.parametrize("chunks", [((4,), (0,)), ((4, 2), (0, 2)), ((4, 2), (0, 1))])
def test_an_allele_lost_scored_twice_or_unknown_is_an_error(run, chunks):
    with pytest.raises(RuntimeError, match="e0: scored"):
        run(chunks=chunks)


def test_effects_towards_the_effect_allele_turn_where_that_is_the_reference_one(run):
    outputs = run()
    scores, summary = (pq.read_table(outputs[name]) for name in ("scores", "summary"))
    directions = {0: 1, 2: -1, 3: -1, 4: None}
    assert len(scores) > len(directions)
    for row in scores.to_pylist():
        direction = directions[row["allele_id"]]
        assert row["logfc_effect"] == (direction and direction * row["logfc"])
    for row in summary.to_pylist():
        direction = directions.get(row["allele_id"])
        assert row["max_logfc_effect"] == (direction and direction * row["max_logfc"])


def test_the_summary_has_the_experiment_of_the_largest_effect_and_every_allele(run):
    rows = pq.read_table(run()["summary"]).to_pylist()
    assert [row["allele_id"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["max_experiment"] for row in rows] == ["e2", None, "e2", "e2", "e2"]
    assert rows[3]["max_logfc"] == planted(0, 2)


def test_no_scoreable_allele_gives_empty_tables_with_all_columns(tmp_path):
    alleles = tmp_path / "alleles.parquet"
    names = ("chrom", "id", "ref", "alt", "status", "effect_is")
    text = {name: pa.array([], pa.string()) for name in names}
    text |= {name: pa.array([], pa.string()) for name in ("scored_ref", "scored_alt")}
    ids = {name: pa.array([], pa.int64()) for name in ("allele_id", "record", "pos", "scored_as")}
    pq.write_table(pa.table(text | ids), alleles)
    names = ("scores", "folds_out", "biosamples_out", "summary", "summary_tsv")
    outputs = {name: tmp_path / name for name in names}
    samples = [Biosample("e0", ("e0",), ("",))]
    collect(alleles, [[]], [[]], ["e0"], samples=samples, **outputs)
    expected = columns.answers(nulls=False, fdr=False).names
    assert pq.read_table(outputs["scores"]).schema.names == expected
    assert len(pq.read_table(outputs["folds_out"])) == 0
    tables.parquet_to_tsv(outputs["scores"], tmp_path / "s.tsv.gz")
    with gzip.open(tmp_path / "s.tsv.gz", "rt") as handle:
        assert handle.read().split() == expected


def test_parts_are_dealt_out_bundle_after_bundle():
    parts = ["stored.a.parquet", "0.a.parquet", "1.a.parquet", "0.b.parquet"]
    assert by_bundle(parts) == [parts[:3], parts[3:]]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("answers/0.b.parquet", truncate),
        ("answers/0.b.parquet", flip),
        ("nulls/b.parquet", flip),
        ("jobs/0.b.json", truncate),
    ],
)
def test_a_damaged_part_is_named_and_removed_to_be_made_again(tmp_path, damage, name):
    parts = [tmp_path / part for part in ("answers/0.b.parquet", "nulls/b.parquet")]
    record = tmp_path / "jobs/0.b.json"
    for path in (*parts, record):
        path.parent.mkdir()
    for path in parts:
        tables.write_parquet(path, [pa.table({"allele_id": range(99)})])
    tuned = {"gpu": None, "waited_seconds": 0}
    written = provenance.job(1, n_alleles=1, n_models=1, tuned=tuned, parts=map(str, parts))
    record.write_text(json.dumps(written))
    check(list(map(str, parts)), [str(record)])
    damage(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}.*: not as the job wrote it"):
        check(list(map(str, parts)), [str(record)])
    assert not (tmp_path / name).exists()
