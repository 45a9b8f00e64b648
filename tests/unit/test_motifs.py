"""Motifs: the scan against memelite's FIMO, verdicts against planted truth, and what a file is."""

import gzip
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from memelite import fimo

from named import right_and_false, truth
from project import DEMO
from veff.errors import InputError
from veff.inputs import classes, preparing
from veff.inputs.reference import Reference, build
from veff.motifs import hits, motifset, verdicts
from veff.motifs.marks import Marks
from veff.motifs.motifset import MotifSet
from veff.motifs.scan import Scanner
from veff.scoring import explain, windows

ACGT = np.frombuffer(b"ACGT", np.uint8)


HOW = {"seed": 0, "scheme": "uniform", "regions": None}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's finder, nulls, alleles and hits."""
    folder = tmp_path_factory.mktemp("motifs")
    build(DEMO / "genome.fa.gz", folder / "reference")
    reference = Reference.open(folder / "reference")
    paths = folder / "alleles.parquet", folder / "scoreable.parquet"
    preparing.prepare(DEMO / "variants.vcf.gz", reference, *paths, chunk_size=1000)
    finder = hits.Finder(motifset.read(DEMO / "motifs.meme"), reference)
    alleles = pq.read_table(paths[1])
    nulls = finder.nulls(alleles, **HOW)
    return finder, nulls, alleles, pa.concat_tables(finder.hits(alleles, nulls))


def random_motifs(n, seed=0, widest=13):
    rng = np.random.default_rng(seed)
    return {f"m{i} x": rng.dirichlet([0.15] * 4, rng.integers(5, widest + 1)).T for i in range(n)}


def as_set(motifs):
    return MotifSet(list(motifs), list(motifs.values()), list(motifs))


def one_hot(bases):
    return (bases[:, None, :] == ACGT[:, None]).astype(np.int8)


def fimo_hits(motifs, bases, threshold):
    """{(sequence, motif): [(start, end, strand, score, p)]}, by memelite's FIMO."""
    found = {}
    for table in fimo(motifs, one_hot(bases), threshold=threshold):
        for row in table.itertuples(index=False):
            key = (int(row.sequence_name), row.motif_name)
            found.setdefault(key, []).append((row.start, row.end, row.strand, row.score, row[-1]))
    return found


def test_the_best_fit_to_each_sequence_is_that_of_memelites_fimo():
    motifs, n, half = random_motifs(12), 300, 40
    rng = np.random.default_rng(1)
    bases = ACGT[rng.integers(0, 4, (2, n, 2 * half))]
    bases[:, ::17, ::7] = windows.N
    lengths = rng.integers(0, 9, (2, n))
    best = Scanner(as_set(motifs)).best(bases, half, lengths)
    assert 0.2 < best.reverse.mean() < 0.8
    compared = 0
    for row in range(2):
        expected = fimo_hits(motifs, bases[row], threshold=0.01)
        for k, name in enumerate(motifs):
            for i in range(n):
                touching = [
                    hit
                    for hit in expected.get((i, name), [])
                    if hit[0] < half + lengths[row, i] and hit[1] > half
                ]
                if not touching:
                    # Of bins below 0, memelite does not report all scores.
                    assert 2 ** best.log_p[row, k, i] > 0.0099 or best.score[row, k, i] < 0
                    continue
                *_, score, p = max(touching, key=lambda hit: hit[3])
                assert best.score[row, k, i] == pytest.approx(score, abs=1e-9)
                assert 2 ** best.log_p[row, k, i] == pytest.approx(p, rel=1e-9)
                placed = best.offset[row, k, i] + half, "+-"[int(best.reverse[row, k, i])]
                assert placed in [hit[0:3:2] for hit in touching if hit[3] >= score - 1e-9]
                compared += 1
    assert compared > 200


def test_the_p_value_of_a_perfect_fit_is_that_of_one_sequence():
    """Its score may lie above the last bin that memelite has a p-value for: there it says 0."""
    rng = np.random.default_rng(8)
    for width in (4, 9, 20):
        matrix = rng.dirichlet([0.3] * 4, width).T
        bases = ACGT[np.r_[np.zeros(20, int), matrix.argmax(0), np.zeros(20, int)]]
        ends = np.array([[width], [width]])
        best = Scanner(as_set({"m": matrix})).best(np.stack([bases] * 2)[:, None], 20, ends)
        assert np.isfinite(best.log_p).all()
        assert (best.log_p >= -2 * width).all()
        assert (best.log_p < -2 * width + 3).all()


def judged(rows, explained, **more):
    rows = rows.filter(pa.compute.is_valid(rows["motif"])).to_pandas()
    return verdicts.judge(rows, explained, **more)


def test_planted_motifs_are_named_by_sequence_alone(demo):
    right, false = right_and_false(judged(demo[3], {}))
    assert len(right["SNV"]) > 100
    assert len(right["indel"]) > 40
    assert all(np.mean(one) >= 0.95 for one in right.values()), right
    # Near misses, which are hits to FIMO, cannot be told from sites without a model.
    assert np.mean([*false["SNV"], *false["indel"]]) <= 0.08


@pytest.fixture(scope="module")
def explained(demo):
    """What the attributions are of a model that uses the demo's exact sites and nothing else."""
    finder, _, alleles, _ = demo
    rng = np.random.default_rng(0)
    motifs = dict(zip(finder.motifs.names, finder.motifs.matrices, strict=True))
    perfect = {name: np.log2(4 * (m.max(0) + 1e-4)).sum() for name, m in motifs.items()}
    places = [alleles[c].to_numpy() for c in ("contig", "start", "ref_len")]
    both = windows.windows(finder.reference, *places, alleles["alt"].to_pylist(), 400)[:2]
    found = {number: [] for number in alleles["allele_id"].to_pylist()}
    for bases in both:
        values = rng.normal(0, 1e-3, bases.shape)
        for (i, name), placed in fimo_hits(motifs, bases, 1e-4).items():
            for start, end, _, score, _ in placed:
                values[i, start:end] += 0.1 * (score > perfect[name] - 0.01)
        for rows, one in zip(found.values(), values, strict=True):
            rows.append({"attribution": one, "experiment": "e", **EFFECT})
    return found


EFFECT = {"logfc": -1.0, "transplanted_logfc": -0.4}


def test_planted_motifs_are_named_and_no_others_where_a_model_uses_exact_sites(demo, explained):
    found = judged(demo[3], explained)
    right, false = right_and_false(found)
    assert all(np.mean(one) >= 0.95 for one in right.values()), right
    assert not any([*false["SNV"], *false["indel"]])
    # A near miss that is left is a hit for FIMO, and none for the model.
    firsts = found.drop_duplicates("allele_id")
    assert set(firsts["verdict"]) == {"gained", "lost", "none"}
    assert not firsts["effect_kept"].any()
    assert (firsts["alt_pval"][firsts["verdict"] == "lost"] < hits.HIT).any()


def test_without_attributions_an_effect_as_by_chance_makes_no_verdict(demo, explained):
    before = judged(demo[3], {})
    effects = {n: (0.05, 0.06)[n % 2] for n in before["allele_id"] if n % 3}
    after = judged(demo[3], {}, effects=effects)
    names = ["allele_id", "motif"]
    both = before.merge(after, on=names, suffixes=("", "_after"), validate="one_to_one")
    by_chance = both["allele_id"].map(effects) > 0.05
    assert (both["verdict_after"] == np.where(by_chance, "none", both["verdict"])).all()
    assert (both["verdict"] != both["verdict_after"]).sum() > 20
    attributed = judged(demo[3], explained, effects=dict.fromkeys(effects, 1.0))
    assert attributed["verdict"].tolist() == judged(demo[3], explained)["verdict"].tolist()


def compare_motifs(motifs, bases, threshold):
    """gReLU's comparison, as of 2026: hits joined by motif, start, end and strand; where one
    sequence has none, the score of that place in it; without those whose score is the same.

    bases [2, n, L]; {(sequence, motif): {(start, end, strand): [ref, alt]}}.
    """
    joined = {}
    for row, sequences in enumerate(bases):
        for key, placed in fimo_hits(motifs, sequences, threshold).items():
            for start, end, strand, score, _ in placed:
                places = joined.setdefault(key, {})
                places.setdefault((start, end, strand), [None, None])[row] = score
    for (i, name), places in joined.items():
        for (start, end, strand), scores in places.items():
            matrix = motifs[name] if strand == "+" else motifs[name][::-1, ::-1]
            log_odds = np.log2(matrix + 1e-4) - np.log2(0.25)
            for row in (0, 1):
                if scores[row] is None:
                    scores[row] = (
                        log_odds.T * one_hot(bases[row, i : i + 1])[0].T[start:end]
                    ).sum()
        joined[i, name] = {at: pair for at, pair in places.items() if pair[0] != pair[1]}
    return joined


def test_changes_by_snvs_are_those_of_grelus_comparison():
    """Of all places that it lists of a motif, ours are each sequence's best."""
    motifs, rng, half, n = random_motifs(8, 3, widest=8), np.random.default_rng(4), 30, 1500
    codes = rng.integers(0, 4, (n, 2 * half))
    changed = codes.copy()
    changed[:, half] = (codes[:, half] + rng.integers(1, 4, n)) % 4
    bases = ACGT[np.stack([codes, changed])]
    listed = compare_motifs(motifs, bases, 1e-3)
    best = Scanner(as_set(motifs)).best(bases, half, np.ones((2, n), int))
    same_place = 0
    for i in range(n):
        for k, name in enumerate(motifs):
            pairs = listed.get((i, name), {})
            hit = 2 ** best.log_p[:, k, i] < 1e-3
            assert hit.any() == bool(pairs)
            score = best.score[:, k, i]
            starts = best.offset[:, k, i] + half
            ends = starts + motifs[name].shape[1]
            strands = ["+-"[int(reverse)] for reverse in best.reverse[:, k, i]]
            places = list(zip(starts, ends, strands, strict=True))
            for row in np.flatnonzero(hit):
                assert score[row] == pytest.approx(pairs[places[row]][row], abs=1e-9)
                assert score[row] == pytest.approx(max(p[row] for p in pairs.values()), abs=1e-9)
            if pairs and places[0] == places[1]:
                ref, alt = pairs[places[0]]
                assert score[1] - score[0] == pytest.approx(alt - ref, abs=1e-9)
                same_place += 1
    assert same_place > 30
    assert len(listed) > 100


def test_an_indel_beside_a_site_changes_nothing_where_a_join_by_position_loses_and_gains_it():
    matrix = np.eye(4)[:, [2, 0, 3, 0, 0, 2, 1, 1]]  # GATAAGCC
    motifs = {"site": matrix}
    left, site, right = "ACCATTTCGA" * 4, "GATAAGCC", "TTCACGATCA" * 4

    def both(kept, ref, alt, half):
        """Hits joined by position, and our p-values, of an insertion behind `kept`."""
        bases = as_bases(kept + ref, half), as_bases(kept + alt, half)
        bases = np.stack(bases)[:, None]
        joined = compare_motifs(motifs, bases, hits.HIT)[0, "site"]
        lengths = np.array([[0], [len(alt) - len(ref)]])
        best = Scanner(as_set(motifs)).best(bases, half, lengths)
        return sorted(np.argmin(pair) for pair in joined.values()), 2 ** best.log_p[:, 0, 0], best

    tail = "CT" + site + right
    joined, p, _ = both(left, tail, "AGG" + tail, len(left))
    assert joined == [0, 1]  # gained at one place, lost at another
    assert (p > hits.HIT).all()
    # Of two sites one is broken. By position the other one is lost too, and gained.
    tail = site[4:] + "C" + site + right
    joined, p, best = both(left + site[:4], tail, "CCC" + tail, len(left) + 4)
    assert joined == [0, 1, 1]
    assert (p < hits.HIT).tolist() == [True, False]
    assert best.offset[0, 0, 0] == -4


def as_bases(text, half):
    return np.frombuffer(text[: 2 * half].encode(), np.uint8)


@pytest.mark.parametrize(
    ("ref_len", "alt", "offset", "width", "place"),
    [
        (1, "C", -2, 5, (98, 103)),
        (3, "", -2, 5, (98, 106)),  # spans what is deleted
        (0, "AAAA", -2, 5, (98, 100)),  # ends within what is inserted
        (0, "AAAA", 1, 3, (100, 100)),  # stands in it
        (0, "AAAA", 3, 5, (100, 104)),  # and goes on behind
        (3, "A", 0, 5, (100, 107)),
    ],
)
def test_where_a_fit_to_the_alternate_stands_on_the_reference(ref_len, alt, offset, width, place):
    alleles = pa.table({"start": [100], "ref_len": [ref_len], "alt": [alt]})
    found = hits._on_reference(alleles, np.array([offset]), np.array([width]), np.array([True]))
    assert tuple(int(x[0]) for x in found) == place
    found = hits._on_reference(alleles, np.array([offset]), np.array([width]), np.array([False]))
    assert tuple(int(x[0]) for x in found) == (100 + offset, 100 + offset + width)


def test_p_values_are_shares_of_random_alleles_of_the_same_class(demo):
    finder, nulls, alleles, rows = demo
    assert {len(null.largest) for null in nulls.values()} == {hits.N_NULL, hits.N_OF_OTHERS}
    lengths = {row["allele_id"]: (row["ref_len"], len(row["alt"])) for row in alleles.to_pylist()}
    seen = Counter()
    for row in rows.to_pylist():
        if row["motif"] is None:
            continue
        kind = int(classes.number(*np.array(lengths[row["allele_id"]])[:, None])[0])
        if seen[kind] == 20:
            continue
        null = nulls[kind].evidence
        family = finder.motifs.names.index(row["family"])
        evidence, n = abs(row["evidence"]), null.shape[1]
        as_much = sum(x >= evidence for x in null[family].tolist())
        of_any = sum(x >= evidence for x in null.max(0).tolist())
        assert row["pval"] == (1 + as_much) / (1 + n)
        assert row["max_pval"] == (1 + of_any) / (1 + n)
        seen[kind] += 1
    assert len(seen) > 3


@pytest.mark.parametrize("kind", ["snv", "ins_6_20", "del_6_20", "mnv_21_100"])
def test_p_values_hold_for_other_random_alleles_of_the_class(demo, kind):
    finder = demo[0]
    null, other = (finder.null(kind, **HOW | {"seed": seed}).largest for seed in (0, 1))
    p, of_snvs = (
        hits.p_value(other[other > 0], against, one_sided=True)
        for against in (null, demo[1][0].largest)
    )
    for level in (0.005, 0.01, 0.02):
        expected = level * len(other)
        assert (p <= level).sum() <= expected + 3 * np.sqrt(2 * expected)
    if kind != "snv":  # by chance longer alleles change more than SNVs
        assert (of_snvs <= 0.02).sum() > 1.5 * 0.02 * len(other)


def test_the_motif_that_is_drawn_is_the_first_with_a_verdict(demo, tmp_path):
    finder, _, alleles, rows = demo
    pq.write_table(rows, tmp_path / "hits.parquet")
    marks = Marks(tmp_path / "hits.parquet", finder.motifs)
    matrices = dict(zip(finder.motifs.names, finder.motifs.matrices, strict=True))
    seen = Counter()
    for row in alleles.slice(0, 60).to_pylist():
        planted = truth()[row["allele_id"]]
        mark = marks.of(without_attribution(row["allele_id"]))
        if planted["class"] == "spares":
            continue
        assert mark.name == planted["motif"]
        assert mark.row == (planted["class"] == "creates")
        matrix = matrices[mark.name]
        turned = not np.array_equal(mark.matrix, matrix)
        assert np.array_equal(mark.matrix, matrix[::-1, ::-1] if turned else matrix)
        # What it is drawn under is what it fits.
        half = 50
        places = [np.array([row[name]]) for name in ("contig", "start", "ref_len")]
        bases = windows.windows(finder.reference, *places, [row["alt"]], 2 * half)[mark.row][0]
        under = bases[half + mark.offset :][: matrix.shape[1]]
        assert all(mark.matrix["ACGT".index(chr(b)), i] > 0 for i, b in enumerate(under))
        seen[turned, mark.row] += 1
    assert len(seen) == 4


def without_attribution(number):
    return SimpleNamespace(allele={"allele_id": number}, attribution=None)


def test_without_nulls_there_is_no_p_value_and_a_verdict_by_the_hits_alone(demo):
    finder, _, alleles, _ = demo
    rows = pa.concat_tables(finder.hits(alleles, None))
    assert rows["pval"].null_count == rows["max_pval"].null_count == len(rows)
    for row in judged(rows, {}).to_dict("records"):
        before, after = row["ref_pval"] < hits.HIT, row["alt_pval"] < hits.HIT
        both = "strengthened" if row["change"] > 0 else "weakened"
        expected = both if before and after else "gained" if after else "lost"
        assert row["verdict"] == (expected if abs(row["change"]) >= 1 else "none")


@pytest.mark.parametrize("kind", ["snv", "mnv_101_500", "ins_101_500", "del_101_500"])
def test_random_alleles_can_stand_in_shuffled_flanks(demo, monkeypatch, kind):
    for name in ("N_NULL", "N_OF_OTHERS"):
        monkeypatch.setattr(hits, name, 50)
    null = demo[0].null(kind, seed=3, scheme="shuffled", regions=None)
    assert null.evidence.shape == (3, 50)
    assert np.isfinite(null.evidence).all()


def test_an_allele_without_a_hit_has_a_row_that_says_so(demo, tmp_path):
    _, _, alleles, rows = demo
    pq.write_table(rows, tmp_path / "hits.parquet")
    summary = [
        {"allele_id": n, **{c: row[c] for c in ("chrom", "id", "ref", "alt")}}
        | {"pos": int(row["pos"]), "max_pval": None if n % 2 else 0.5}
        for n, row in truth().items()
    ]
    pq.write_table(pa.Table.from_pylist(summary), tmp_path / "summary.parquet")
    paths = (tmp_path / name for name in ("out.parquet", "summary.parquet", "hits.parquet"))
    verdicts.write(*paths, None)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.schema.names == verdicts.SCHEMA.names
    assert all(field.metadata[b"description"] for field in written.schema)
    per_allele = Counter(written["allele_id"].to_pylist())
    assert set(per_allele) == set(alleles["allele_id"].to_pylist())
    without = [row for row in written.to_pylist() if row["motif"] is None]
    assert without
    assert {per_allele[row["allele_id"]] for row in without} == {1}
    assert {(row["verdict"], row["evidence"]) for row in without} == {("none", None)}
    for row in written.to_pylist():
        assert row["id"] == truth()[row["allele_id"]]["id"]
        assert row["effect_pval"] == (None if row["allele_id"] % 2 else 0.5)
        assert row["verdict"] == "none" or row["allele_id"] % 2


def test_families_join_what_is_alike_whatever_its_strand_offset_and_noise():
    rng = np.random.default_rng(5)
    one, other = (rng.dirichlet([0.1] * 4, 10).T for _ in range(2))
    flank = np.full((4, 2), 0.25)
    alike = [
        one,
        other,
        one[::-1, ::-1],
        np.concatenate([flank, one], axis=1),
        (one + 0.05) / 1.2,
        other[:, 1:],
    ]
    assert motifset.families(alike) == [0, 1, 0, 0, 0, 1]
    found = motifset.similarity(alike)
    for i, a in enumerate(alike):
        for j, b in enumerate(alike):
            assert found[i, j] == pytest.approx(cosine(a, b), abs=1e-9)


def cosine(a, b):
    """The largest over all offsets and both strands, by going through them."""
    a, best = a - 0.25, -1
    for strand in (b - 0.25, b[::-1, ::-1] - 0.25):
        for offset in range(-b.shape[1] + 1, a.shape[1]):
            total = sum(
                a[:, k] @ strand[:, k - offset]
                for k in range(a.shape[1])
                if 0 <= k - offset < strand.shape[1]
            )
            best = max(best, total / np.linalg.norm(a) / np.linalg.norm(strand))
    return best


MEME = """MEME version 4

ALPHABET= ACGT

MOTIF MA1.1 one
letter-probability matrix: alength= 4 w= 3 nsites= 20 E= 0
 0.1  0.2 0.3 0.4
0 0 0 1
0.25\t0.25\t0.25\t0.25
URL http://x

MOTIF two
letter-probability matrix: alength= 4 w=3
1 0 0 0
1 0 0 0
1 0 0 0
"""


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_in_memes_format_is_read_plain_and_packed(tmp_path, packed):
    path = tmp_path / "motifs.meme"
    path.write_bytes(gzip.compress(MEME.encode()) if packed else MEME.encode())
    found = motifset.read(path)
    assert found.names == ["MA1.1 one", "two"]
    assert found.matrices[0].T.tolist() == [[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1], [0.25] * 4]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ACGT", "ACGU", "line 3: ALPHABET= ACGU: expected the alphabet ACGT"),
        ("0 0 0 1", "0 0 0 x", "line 8: expected the probabilities"),
        ("0 0 0 1", "0 0 1", "line 8: expected the probabilities"),
        ("0 0 0 1", "9 0 0 1", "line 8: the probabilities of A, C, G and T add up to 10"),
        ("two", "MA1.1 one", "line 12: expected a name that no motif has yet"),
        ("w=3", "w=2", "line 13: expected a MOTIF line before, and w= of 3 to 64"),
        ("1 0 0 0\n1 0 0 0\n1 0 0 0\n", "1 0 0 0\n", "ends within two"),
        (MEME, "chr1\t5\n", "has no motif"),
    ],
)
def test_a_file_that_is_none_is_refused_naming_its_line(tmp_path, old, new, message):
    path = tmp_path / "motifs.meme"
    path.write_text(MEME.replace(old, new, 1))
    with pytest.raises(InputError, match=path.name) as error:
        motifset.read(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_jaspar_comes_from_its_package_with_the_families_that_one_expects():
    pytest.importorskip("pyjaspar")
    found = motifset.read("jaspar")
    assert len(found.names) > 1000
    family = dict(zip(found.names, found.families, strict=True))
    assert family["MA0035.5 GATA1"] == family["MA0482.3 GATA4"]
    assert family["MA0039.5 KLF4"] == family["MA0079.5 SP1"]
    assert family["MA0490.3 JUNB"] == family["MA0478.2 FOSL2"]
    assert len({family[f"MA{n}"] for n in ("0035.5 GATA1", "0039.5 KLF4", "0478.2 FOSL2")}) == 3
    assert max(Counter(found.families).values()) < 150


@pytest.mark.parametrize("lengths", [(1, 1), (4, 0), (0, 5)])
def test_a_transplant_keeps_the_neighbourhood_and_the_flanks_dinucleotides(lengths):
    rng = np.random.default_rng(6)
    half, length = 200, 400
    whole = ACGT[rng.integers(0, 4, 500)]
    ref = whole[:length]
    inserted = ACGT[rng.integers(0, 4, lengths[1])]
    alt = np.concatenate([whole[:half], inserted, whole[half + lengths[0] :]])[:length]
    found = explain.transplants(np.stack([ref, alt]), lengths, 3)
    assert found.shape == (2, 3, length)
    left, behind = half - explain.KEPT, half + explain.KEPT
    for n in range(3):
        for row, own in enumerate((ref, alt)):
            end = behind + lengths[row]
            assert (found[row, n, left:end] == own[left:end]).all()
        assert (found[0, n, :left] == found[1, n, :left]).all()
        assert (found[0, n, :left] != ref[:left]).mean() > 0.3
        assert pairs(found[0, n, :left]) == pairs(ref[:left])
        tails = [found[row, n, behind + lengths[row] :] for row in range(2)]
        shared = min(map(len, tails))
        assert (tails[0][:shared] == tails[1][:shared]).all()
        longer = int(np.argmin(lengths))
        own = (ref, alt)[longer][behind + lengths[longer] :]
        assert pairs(tails[longer]) == pairs(own)


def pairs(bases):
    return Counter(zip(bases.tolist(), bases[1:].tolist(), strict=False))
