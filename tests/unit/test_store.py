"""Stored scores come back to the bit, from whatever others do to the store meanwhile."""

import gzip
import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pysam
import pytest

from tiny import Tiny, a_fold
from veff.models.experiment import Experiment
from veff.scoring import columns, edits
from veff.scoring.how import How
from veff.store import Store, Wanted, export, identity, lookup, part, using
from veff.store.contigs import hashes

HOW = How(device="cpu")
N = 40


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Alleles, and what real models say of them: folds and signal groups, and one fold alone."""
    tiny = Tiny(tmp_path_factory.mktemp("store"))
    tiny.experiments = [
        tiny.experiment("pair", (0, 1), signal_groups=[1, 2]),
        tiny.experiment("single", (2,)),
    ]
    tiny.rows = tiny.alleles(N)
    tiny.answers, tiny.folds = tiny.score(tiny.rows, *tiny.experiments)
    return tiny


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def a_store(folder, how=HOW, on_gpu=False):
    return Store(folder, how, on_gpu)


def add(scored, folder, which=slice(None), gpu=None, how=HOW, contigs=None):
    """What a scoring job of these alleles keeps."""
    ids = scored.rows["allele_id"].to_numpy()[which]
    rows = scored.rows.take(ids)
    tables = [
        tuple(table.filter(pc.is_in(table["allele_id"], pa.array(ids))) for table in pair)
        for pair in zip(scored.answers, scored.folds, strict=True)
    ]
    store = a_store(folder, how, gpu is not None)
    contigs = contigs or hashes(scored.reference)
    list(using.adding(tables, store, rows, contigs, scored.experiments, gpu))


def wanted(scored, contigs=None):
    return Wanted(scored.rows, contigs or hashes(scored.reference))


def found(scored, folder, experiment=0, how=HOW, on_gpu=False, contigs=None):
    """The alleles that the store has."""
    store = a_store(folder, how, on_gpu)
    has = store.has(scored.experiments[experiment], wanted(scored, contigs))
    return np.flatnonzero(has).tolist()


def in_order(table):
    keys = [name for name in ("allele_id", "group", "fold") if name in table.column_names]
    return table.sort_by([(key, "ascending") for key in keys])


def parts(folder):
    return sorted(folder.rglob("*.parquet"))


def parts_of(scored, folder, experiment=0):
    said = identity.of(scored.experiments[experiment], HOW, identity.CPU)
    return parts(folder / identity.CPU / identity.digest(said))


def test_what_was_scored_comes_back_to_the_bit_folds_and_groups_too(scored, folder):
    add(scored, folder, slice(0, N, 2))
    add(scored, folder, slice(1, N, 2))
    for one, answer, folds in zip(scored.experiments, scored.answers, scored.folds, strict=True):
        store, alleles = a_store(folder), wanted(scored)
        has = store.has(one, alleles)
        assert has.all()
        back = store.scores(one, alleles, has)
        for table, expected in zip(back, (answer, folds), strict=True):
            assert table.schema.equals(expected.schema)
            assert in_order(table).equals(in_order(expected))


def test_scores_come_in_the_order_of_the_alleles_whatever_the_names_of_their_parts(scored, folder):
    for i in range(0, N, 5):  # each on one contig: in a part, contigs stand in the order of hashes
        add(scored, folder, slice(i, i + 5))
    for one in scored.experiments:
        store, alleles = a_store(folder), wanted(scored)
        answer, _ = store.scores(one, alleles, store.has(one, alleles))
        assert np.array_equal(answer["allele_id"].to_numpy()[:N], alleles.allele_id)


def virtual_alleles(scored):
    """Each SNV among others, of different backgrounds, not in the order of the genome."""
    edits_of = [
        {"start": row["start"], "ref_len": row["ref_len"], "alt": row["alt"]}
        for row in scored.rows.to_pylist()
    ]
    rows = []
    for row, edit in zip(scored.rows.to_pylist(), edits_of, strict=True):
        near = [
            other
            for other, one in zip(edits_of, scored.rows.to_pylist(), strict=True)
            if one["contig"] == row["contig"] and 20 < abs(other["start"] - edit["start"]) < 200
        ]
        for background in ([], near[:1]):
            own = {"contig": row["contig"], "centre": edit["start"], "edits": [edit]}
            rows.append(own | {"background": background})
    rows = rows[::2] + rows[1::2]
    return pa.Table.from_pylist(
        [row | {"allele_id": i} for i, row in enumerate(rows)], schema=edits.VIRTUAL
    )


def test_of_virtual_alleles_only_those_are_scored_that_the_store_lacks(scored, folder, tmp_path):
    virtual, asked = virtual_alleles(scored), []
    assert any(virtual["background"].to_pylist())

    def score(rows):
        asked.append(len(rows))
        return zip(*scored.score(rows, *scored.experiments), strict=True)

    def reused(rows):
        what = hashes(scored.reference), scored.experiments, None
        return list(using.reusing(score, a_store(folder), rows, *what))

    expected = list(score(virtual))
    reused(virtual.slice(0, 7))
    for _ in range(2):
        for pair, once in zip(reused(virtual), expected, strict=True):
            assert all(table.equals(one) for table, one in zip(pair, once, strict=True))
    assert asked == [len(virtual), 7, len(virtual) - 7]
    published = {"tsv": tmp_path / "all.tsv.gz", "vcf": tmp_path / "all.vcf.gz"}
    what = hashes(scored.reference), scored.experiments
    assert export.export(a_store(folder), scored.reference, *what, **published) == 0


def test_only_alleles_that_are_there_are_found(scored, folder):
    add(scored, folder, slice(3, 17))
    assert found(scored, folder) == list(range(3, 17))


def test_of_a_large_part_only_the_row_groups_near_an_allele_are_read(scored, folder, monkeypatch):
    monkeypatch.setattr(part, "ROWS", 4)
    add(scored, folder)
    read = []
    rows = part.Part.rows
    monkeypatch.setattr(part.Part, "rows", lambda self, g: read.append(g) or rows(self, g))
    alleles = Wanted(scored.rows.slice(5, 1), hashes(scored.reference))
    store, one = a_store(folder), scored.experiments[0]
    answer, _ = store.scores(one, alleles, store.has(one, alleles))
    assert set(answer["allele_id"].to_pylist()) == {5}
    assert len(read) == 1


def test_which_alleles_a_job_scored_is_read_once_for_all_its_experiments(
    scored, folder, monkeypatch
):
    add(scored, folder)
    read = []
    alleles = part.Part.alleles
    monkeypatch.setattr(part.Part, "alleles", lambda self, g: read.append(g) or alleles(self, g))
    store, these = a_store(folder), wanted(scored)
    for one in scored.experiments:
        store.scores(one, these, store.has(one, these))
    assert read == [0]


@pytest.mark.parametrize(
    "change",
    [{"precision": "fast"}, {"engine": "cherimoya"}, {"ensemble": "mean_score"}, {"version": 99}],
    ids=lambda change: next(iter(change)),
)
def test_what_decides_a_score_is_another_key(scored, folder, change):
    add(scored, folder)
    assert found(scored, folder, how=replace(HOW, **change)) == []


@pytest.mark.parametrize("what", ["_cpu", "_version"])
def test_another_cpu_or_library_is_another_key(scored, folder, monkeypatch, what):
    add(scored, folder)
    monkeypatch.setattr(identity, what, lambda *_: "another")
    assert found(scored, folder) == []


def test_other_models_or_another_order_of_the_folds_are_another_key(scored, folder):
    add(scored, folder)
    one = scored.experiments[0]
    for folds in (one.folds[:1], one.folds[::-1], (one.folds[0], a_fold("pair"))):
        assert not a_store(folder).has(Experiment("pair", folds), wanted(scored)).any()


def test_which_folds_held_out_a_contig_is_another_key_where_only_these_answer(scored, folder):
    held_out = replace(HOW, ensemble="heldout")
    one, *more = scored.experiments[0].folds
    other = Experiment("pair", (replace(one, test_chroms=("one",)), *more))
    for how, alike in ((HOW, True), (held_out, False)):
        keys = [identity.of(each, how, identity.CPU) for each in (scored.experiments[0], other)]
        assert (keys[0] == keys[1]) == alike


def test_a_gpu_gets_what_its_model_scored_and_a_cpu_what_a_cpu_scored(scored, folder):
    add(scored, folder, slice(0, 10), gpu="NVIDIA H200")
    add(scored, folder, slice(10, 20), gpu="NVIDIA A100-SXM4-80GB")
    add(scored, folder, slice(20, 30))
    h200, a100 = (replace(HOW, device="cuda", gpu_model=model) for model in ("h200", "a100"))
    assert found(scored, folder, how=h200, on_gpu=True) == list(range(10))
    assert found(scored, folder, how=a100, on_gpu=True) == list(range(10, 20))
    assert found(scored, folder, on_gpu=True) == list(range(20))  # any GPU will do
    assert found(scored, folder) == list(range(20, 30))


def test_what_cherimoyas_own_kernels_scored_on_a_gpu_is_not_kept(scored, folder):
    said = {"engine": "cherimoya"}
    tables = [
        (a.replace_schema_metadata(said), f)
        for a, f in zip(scored.answers, scored.folds, strict=True)
    ]
    where = (scored.rows, hashes(scored.reference), scored.experiments)
    passed = list(using.adding(tables, a_store(folder), *where, "NVIDIA H200"))
    assert passed == tables
    assert parts(folder) == []
    list(using.adding(tables, a_store(folder), *where, None))
    assert len(parts(folder)) == 2


def test_a_contig_is_known_by_its_bases_whatever_its_name_and_whatever_stands_beside_it(
    scored, folder, tmp_path
):
    add(scored, folder)
    one, two = scored.contigs.values()
    tiny = Tiny.__new__(Tiny)
    tiny.folder = tmp_path
    more = tiny.genome("more", {"decoy": "ACGT" * 100, "1": one.lower(), "2": two})
    alleles = scored.rows.set_column(1, "contig", pc.add(scored.rows["contig"], pa.scalar(1)))
    has = a_store(folder).has(
        scored.experiments[0], Wanted(alleles.cast(scored.rows.schema), hashes(more))
    )
    assert has.all()
    other = tiny.genome("other", {"one": one[:-1] + ("A" if one[-1] != "A" else "C"), "two": two})
    on_two = np.flatnonzero(scored.rows["contig"].to_numpy() == 1).tolist()
    assert found(scored, folder, contigs=hashes(other)) == on_two


def damage(path, where):
    data = bytearray(path.read_bytes())
    match where:
        case "cut short":
            data = data[:-100]
        case "empty":
            data = b""
        case "no parquet":
            data = b"x" * 5000
        case "footer":
            data[-200] ^= 1
        case "a page":
            column = pq.read_metadata(path).row_group(0).column(1)
            data[column.data_page_offset + column.total_compressed_size - 2] ^= 1
    path.write_bytes(data)


DAMAGE = ["cut short", "empty", "no parquet", "footer", "a page"]


@pytest.mark.parametrize("where", DAMAGE)
def test_a_damaged_part_is_dropped_with_a_line_and_can_be_kept_again(
    scored, folder, caplog, where
):
    add(scored, folder, slice(0, 10))
    add(scored, folder, slice(10, N))
    (bad,) = (p for p in parts_of(scored, folder) if pq.read_metadata(p).num_rows == 10)
    damage(bad, where)
    assert found(scored, folder) == list(range(10, N))
    assert [r.message for r in caplog.records if str(bad) in r.message and "dropped" in r.message]
    assert not bad.exists()
    add(scored, folder, slice(0, 10))
    assert found(scored, folder) == list(range(N))


def test_a_page_of_scores_that_is_damaged_is_found_when_it_is_read_and_scored_again(
    scored, folder, tmp_path
):
    add(scored, folder)
    one = scored.experiments[0]
    (bad,) = parts_of(scored, folder)
    column = pq.read_metadata(bad).row_group(0).column(len(part.schema(one)) - 1)
    data = bytearray(bad.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 9] ^= 1
    bad.write_bytes(data)
    assert found(scored, folder) == list(range(N))  # which reads no scores
    record = split(scored, folder, tmp_path)[0]
    assert (record["found"], record["to_score"]) == (0, N)
    assert not bad.exists()


@pytest.mark.parametrize("value", [np.nan, np.inf, None])
def test_a_part_with_a_score_that_is_none_is_dropped(scored, folder, tmp_path, value):
    one, answer, folds = scored.experiments[0], scored.answers[0], scored.folds[0]
    said = identity.of(one, HOW, identity.CPU)
    home = folder / identity.CPU / identity.digest(said)
    home.mkdir(parents=True)
    rows = part.joined(scored.rows, hashes(scored.reference), one, answer, folds)
    bad = pa.array([value] * N, pa.float64())
    place = rows.schema.get_field_index("0.logfc")
    part.write(rows.set_column(place, "0.logfc", bad), said, home)
    scored_alone = replace_experiments(scored, one)
    record = split(scored_alone, folder, tmp_path)[0]
    assert record["found"] == 0
    assert parts(folder) == []


def replace_experiments(scored, *experiments):
    other = Tiny.__new__(Tiny)
    vars(other).update(vars(scored), experiments=list(experiments))
    return other


def test_a_part_with_other_columns_or_of_another_identity_is_dropped(scored, folder):
    add(scored, folder)
    (one,), (other,) = (parts_of(scored, folder, i) for i in (0, 1))
    shutil.copy(other, one.parent)  # of other models
    said = identity.of(scored.experiments[0], HOW, identity.CPU)
    rows = pq.read_table(one)
    part.write(rows.rename_columns([*rows.column_names[:-1], "other"]), said, one.parent)
    assert len(parts(one.parent)) == 3
    assert found(scored, folder) == list(range(N))
    assert parts(one.parent) == [one]


@pytest.mark.parametrize("what", ["link", "fifo", "folder", "group", "everybody"])
def test_what_others_could_have_put_there_is_not_used_and_stays(scored, folder, caplog, what):
    add(scored, folder)
    (one,) = parts_of(scored, folder)
    aside = folder / "aside"
    match what:
        case "link":
            one.rename(aside)
            one.symlink_to(aside)
        case "fifo":
            one.unlink()
            os.mkfifo(one)
        case "folder":
            one.unlink()
            one.mkdir()
        case "group":
            one.chmod(0o664)
        case "everybody":
            one.chmod(0o646)
    caplog.clear()
    assert found(scored, folder) == []
    assert [r.message for r in caplog.records if f"{one} is not used" in r.message]
    assert os.path.lexists(one)
    add(scored, folder)  # by the next name
    assert found(scored, folder) == list(range(N))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_the_part_of_another_user_is_not_used(scored, folder):
    add(scored, folder)
    for path in parts(folder):
        os.chown(path, 60002, 60002)
    assert found(scored, folder) == []
    add(scored, folder)
    assert found(scored, folder) == list(range(N))


def test_a_store_that_cannot_be_written_to_stops_no_job(scored, folder, caplog):
    folder.write_text("a file")
    add(scored, folder)
    assert [r.message for r in caplog.records if "are not kept" in r.message]
    folder.unlink()
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    folder.mkdir()
    (folder / identity.CPU).symlink_to(elsewhere)
    add(scored, folder)
    assert parts(elsewhere) == []


def test_what_a_killed_job_left_aside_is_removed_a_day_later(scored, folder):
    add(scored, folder)
    home = parts(folder)[0].parent
    new, old = home / ".part-new", home / ".part-old"
    for path in (new, old):
        path.touch()
    os.utime(old, (0, time.time() - 2 * part.ABANDONED_S))
    add(scored, folder)
    assert new.exists()
    assert not old.exists()


def _worker(scored, folder, seed):
    rng = random.Random(seed)
    while True:
        first = rng.randrange(N)
        add(scored, folder, slice(first, first + rng.randrange(1, 9)))
        found(scored, folder)


def test_twenty_that_add_and_read_at_once_and_are_killed_leave_nothing_but_whole_parts(
    scored, folder
):
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_worker, args=(scored, folder, i)) for i in range(20)]
    for one in workers:
        one.start()
    rng, until = random.Random(0), time.monotonic() + 6
    while time.monotonic() < until:
        time.sleep(rng.random() / 5)
        at = rng.randrange(20)
        os.kill(workers[at].pid, signal.SIGKILL)
        workers[at].join()
        workers[at] = fork.Process(target=_worker, args=(scored, folder, rng.random()))
        workers[at].start()
    for one in workers:
        assert one.is_alive()  # none met a fault
        os.kill(one.pid, signal.SIGKILL)
        one.join()
    assert len(parts(folder)) > 20
    for one in scored.experiments:
        said = identity.of(one, HOW, identity.CPU)
        for path in parts(folder / identity.CPU / identity.digest(said)):
            with part.opened(path, said, part.schema(one)) as opened:
                assert sum(len(opened.rows(group)) for group in opened.groups) > 0
    add(scored, folder)
    for one, answer, folds in zip(scored.experiments, scored.answers, scored.folds, strict=True):
        store, alleles = a_store(folder), wanted(scored)
        back = store.scores(one, alleles, store.has(one, alleles))
        assert [
            in_order(t).equals(in_order(e)) for t, e in zip(back, (answer, folds), strict=True)
        ] == [1, 1]


def prepared(scored, tmp_path):
    path = tmp_path / "scoreable.parquet"
    pq.write_table(scored.rows, path, row_group_size=15)
    return path


def split(scored, folder, tmp_path):
    out = {name: tmp_path / f"{name}.parquet" for name in ("to_score", "answers", "folds")}
    contigs = hashes(scored.reference)
    scoreable = prepared(scored, tmp_path)
    record = using.split(a_store(folder), scoreable, contigs, scored.experiments, **out)
    return record, {name: pq.ParquetFile(path) for name, path in out.items()}


def test_alleles_are_divided_into_those_found_under_all_experiments_and_the_others(
    scored, folder, tmp_path
):
    add(scored, folder, slice(0, 30))
    add(scored, folder, slice(0, 5))
    (large,) = (p for p in parts_of(scored, folder, 1) if pq.read_metadata(p).num_rows == 30)
    large.unlink()
    record, files = split(scored, folder, tmp_path)
    assert (record["found"], record["to_score"], record["chunks"]) == (5, 35, 3)
    assert record["devices"] == {"CPU": 10}
    assert files["to_score"].read()["allele_id"].to_pylist() == list(range(5, N))
    sizes = [files["to_score"].metadata.row_group(i).num_rows for i in range(3)]
    assert sizes == [15, 15, 5]
    assert files["answers"].num_row_groups == files["folds"].num_row_groups == 2
    for i, expected in enumerate(scored.answers):
        own = expected.filter(pc.less(expected["allele_id"], 5))
        assert in_order(files["answers"].read_row_group(i)).equals(in_order(own))


@pytest.mark.parametrize("models", [True, False])
def test_where_nothing_is_found_or_a_model_is_bad_all_is_to_be_scored(
    scored, folder, tmp_path, models
):
    if not models:
        add(scored, folder)
    these = scored if models else replace_experiments(scored)
    record, files = split(these, folder, tmp_path)
    assert (record["found"], record["to_score"], record["chunks"]) == (0, N, 3)
    assert files["to_score"].read().equals(scored.rows)


def alleles_table(scored, tmp_path):
    """Alleles as `prepare` writes them: one repeats the third, one has no score."""
    names = list(scored.contigs)
    ids = [*range(N), N, N + 1]
    table = {
        "allele_id": ids,
        "chrom": [names[c] for c in scored.rows["contig"].to_pylist()] + ["one", "one"],
        "pos": [s + 1 for s in scored.rows["start"].to_pylist()] + [1, 2],
        **{name: [f"{name}{i}" for i in ids] for name in ("id", "ref", "alt", "effect_is")},
        "scored_as": pa.array([*range(N), 2, None], pa.int64()),
    }
    path = tmp_path / "alleles.parquet"
    pq.write_table(pa.table(table), path)
    return path


def read_tsv(path):
    with gzip.open(path, "rt") as lines:
        head, *rows = (line.rstrip("\n").split("\t") for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_a_lookup_answers_what_is_there_and_names_what_is_not(scored, folder, tmp_path):
    add(scored, folder, slice(0, 10))
    out = {"found": tmp_path / "found.tsv.gz", "missing": tmp_path / "missing.tsv.gz"}
    said = lookup.lookup(
        a_store(folder),
        alleles_table(scored, tmp_path),
        prepared(scored, tmp_path),
        hashes(scored.reference),
        scored.experiments,
        **out,
    )
    rows = read_tsv(out["found"])
    seen = [(r["experiment"], int(r["allele_id"]), int(r["group"])) for r in rows]
    asked = [*range(10), N]
    assert seen == [("pair", i, g) for i in asked for g in (0, 1)] + [
        ("single", i, 0) for i in asked
    ]
    single = scored.answers[1]["logfc"].to_pylist()
    assert [float(r["logfc"]) for r in rows[22:]] == [*single[:10], single[2]]
    lacking = [(int(r["allele_id"]), r["n_missing"]) for r in read_tsv(out["missing"])]
    assert lacking == [(i, "2") for i in range(10, N)]
    assert "22 of 82 scores found" in said
    assert "and 27 more" in said


def test_an_export_has_each_allele_once_with_its_scores_by_position(scored, folder, tmp_path):
    add(scored, folder, slice(0, 25))
    add(scored, folder, slice(20, N))
    tsv, vcf = tmp_path / "s.tsv.gz", tmp_path / "s.vcf.gz"
    n = export.export(
        a_store(folder),
        scored.reference,
        hashes(scored.reference),
        scored.experiments,
        tsv=tsv,
        vcf=vcf,
    )
    assert n == N
    labels = ["pair.0", "pair.1", "single"]
    with pysam.TabixFile(str(tsv), index=f"{tsv}.csi") as table:
        head = table.header[-1].split("\t")
        assert head[4:] == [f"{one}.{score}" for one in labels for score in columns.SCORES]
        rows = [line.split("\t") for name in scored.contigs for line in table.fetch(name)]
    with pysam.VariantFile(str(vcf), index_filename=f"{vcf}.csi") as records:
        listed = [r for name in scored.contigs for r in records.fetch(name)]
    keys = [(r[0], int(r[1]), r[2], r[3]) for r in rows]
    assert keys == [(r.chrom, r.pos, r.ref, r.alts[0]) for r in listed]
    # Its own reading of what each row says: the genome with the row's change in it.
    genome = scored.contigs
    changed = {}
    for chrom, pos, ref, alt in keys:
        assert genome[chrom][pos - 1 : pos - 1 + len(ref)] == ref
        changed[chrom, pos, ref, alt] = (
            genome[chrom][: pos - 1] + alt + genome[chrom][pos - 1 + len(ref) :]
        )
    logfc = {
        a: v
        for a, v in zip(keys, (float(r[head.index("single.logfc")]) for r in rows), strict=True)
    }
    names, expected = list(genome), {}
    for row, value in zip(
        scored.rows.to_pylist(), scored.answers[1]["logfc"].to_pylist(), strict=True
    ):
        bases = genome[names[row["contig"]]]
        end = row["start"] + row["ref_len"]
        whole = bases[: row["start"]] + row["alt"] + bases[end:]
        expected.setdefault((names[row["contig"]], whole), set()).add(value)
    for key in keys:
        assert logfc[key] in expected[key[0], changed[key]]
    for row, record in zip(rows, listed, strict=True):
        value = float(row[head.index("pair.1.jsd")])
        assert record.info["CHERI_JSD_pair.1"][0] == pytest.approx(value, rel=1e-4)
