import pyarrow as pa
import pyarrow.parquet as pq

from veff.outputs import closing

RECORD = {
    "duplicates": [["x: a.torch", "y: a.torch"]],
    "stranded": list("abcdefg"),
    "scoring": {"devices": {"CPU": 2}, "autotune": {"benchmarks": 0, "jobs": 2}},
    "store": {"found": 0, "scored": 0, "devices": {}},
}


def test_a_run_ends_with_the_largest_effects_first_and_what_has_no_score(tmp_path):
    effects = [0.5, None, -2.0]
    table = pa.table(
        {
            "chrom": ["c1", "c2", "c3"],
            "pos": [1, 2, 3],
            "ref": ["A"] * 3,
            "alt": ["G"] * 3,
            "status": ["ok", "ref_mismatch", "ok"],
            "max_experiment": ["x", None, "y"],
            "max_logfc": effects,
            "max_jsd": [0.1, None, 0.2],
            "max_pval": pa.array([None] * 3, pa.float64()),
        }
    )
    pq.write_table(table, tmp_path / "summary.parquet")
    said = closing.words(RECORD, tmp_path / "summary.parquet", has_text=False)
    first, _, c3, c1, unscored, where, same, strands, last = said.splitlines()
    assert first == "2 of 3 alleles have scores; the largest effects:"
    assert [c3.split()[0], c1.split()[0]] == ["c3", "c1"]
    assert "1 ref_mismatch" in unscored
    assert "scores.parquet" in where
    assert same == "The same checkpoint twice: x: a.torch, y: a.torch"
    assert strands.startswith("Stranded: a, b, c, d, e and 2 more. If Cherimoya before 0.2.0 ")
    assert last == "autotune: 0 benchmarks in 2 scoring jobs"
