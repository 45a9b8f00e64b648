import pytest

from veff.errors import InputError
from veff.models import catv1, sheet
from veff.models.sheet import Request

ENTRIES = (
    catv1.Entry("ENCSR000AAA", "K562", "DNase-seq", "", 0.8),
    catv1.Entry("ENCSR000CCC", "liver", "DNase-seq", "male adult (37 years)", 0.7),
    catv1.Entry("ENCSR000DDD", "liver", "DNase-seq", "female child (16 years)", 0.9),
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a sheet beside three empty checkpoints, and returns its path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catv1, "entries", lambda revision: ENTRIES)
    for name in ("a.torch", "b.torch", "c.torch", "peaks.bed"):
        (tmp_path / name).touch()

    def of(text):
        path = tmp_path / "models.tsv"
        path.write_text(text)
        return path

    return of


def hub(accession, *folds):
    return tuple(f"catv1:models/{accession}/cherimoya.fold_{fold}.torch" for fold in folds)


def test_rows_of_one_experiment_are_its_folds_in_order(write):
    path = write("experiment\tcheckpoint\nk\tb.torch\nh\tc.torch\nk\ta.torch\n")
    assert sheet.read(path) == [
        Request("k", ("b.torch", "a.torch")),
        Request("h", ("c.torch",)),
    ]


def test_output_length_is_1000_unless_given(write):
    path = write("experiment\tcheckpoint\toutput_length\nk\ta.torch\t\nh\tb.torch\t500\n")
    assert [one.output_length for one in sheet.read(path)] == [1000, 500]


@pytest.mark.parametrize(
    ("folds", "expected"), [("", range(5)), ("all", range(5)), ("3", [3]), ("0, 2", [0, 2])]
)
def test_folds_of_an_accession(write, folds, expected):
    (one,) = sheet.read(write(f"experiment\tcatv1\tfolds\nk\tENCSR000EOT\t{folds}\n"))
    assert one.checkpoints == hub("ENCSR000EOT", *expected)
    assert one.from_hub == [name.removeprefix("catv1:") for name in one.checkpoints]
    assert one.assembly == "hg38"


@pytest.mark.parametrize(
    ("facets", "accessions"),
    [
        ("\t\t\t", ["AAA", "CCC", "DDD"]),
        ("\tdnase\t\t", ["AAA", "CCC", "DDD"]),
        ("K562\t\t\t", ["AAA"]),
        ("\t\tliver\t", ["CCC", "DDD"]),
        ("\tDNase-seq\tliver\tadult", ["CCC"]),
    ],
)
def test_all_is_each_experiment_that_has_the_facets(write, facets, accessions):
    head = "experiment\tcatv1\tfolds\tbiosample\tassay\torgan\tlife_stage\n"
    found = sheet.read(write(f"{head}x\tall\t0\t{facets}\n"))
    assert [one.name for one in found] == [f"x.ENCSR000{end}" for end in accessions]
    assert [one.checkpoints for one in found] == [hub(f"ENCSR000{end}", 0) for end in accessions]


def test_what_is_known_of_an_experiment_of_all_stands_beside_it(write):
    *_, last = sheet.read(write("experiment\tcatv1\tlife_stage\nx\tall\t\n"))
    assert dict(last.about) == {
        "accession": "ENCSR000DDD",
        "biosample": "liver",
        "assay": "DNase-seq",
        "life_stage": "child",
    }


def test_a_biosample_and_an_assay_are_looked_up(write):
    (one,) = sheet.read(write("experiment\tbiosample\tassay\nk\tK562\tDNase\n"))
    assert one.checkpoints == hub("ENCSR000AAA", *range(5))
    said = {"accession": "ENCSR000AAA", "biosample": "K562", "assay": "DNase-seq"}
    assert dict(one.about) == said


def test_one_sheet_takes_all_three_sources(write):
    header = "experiment\tcheckpoint\tcatv1\tbiosample\tassay\tfolds\n"
    rows = "a\ta.torch\t\t\t\t\nb\t\tENCSR000EOT\t\t\t0\nc\t\t\tK562\tDNase\t1\n"
    assert [one.checkpoints for one in sheet.read(write(header + rows))] == [
        ("a.torch",),
        hub("ENCSR000EOT", 0),
        hub("ENCSR000AAA", 1),
    ]


def test_columns_of_ones_own_are_kept(write):
    header = "experiment\tcheckpoint\ttissue\tdonor\tbiosample\n"
    rows = "k\ta.torch\tblood\tx\tK562\nk\tb.torch\tblood\ty\tK562\n"
    (one,) = sheet.read(write(header + rows))
    assert dict(one.about) == {"biosample": "K562", "tissue": "blood", "donor": "x,y"}


def test_group_peaks_and_assembly_are_read(write):
    text = "experiment\tcheckpoint\tgroup\tpeaks\tassembly\nk\ta.torch\t1\tpeaks.bed\tGRCh38\n"
    (one,) = sheet.read(write(text))
    assert (one.group, one.peaks, one.assembly) == (1, "peaks.bed", "hg38")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column 'experiment'"),
        ("experiment\n", "line 1: no column 'checkpoint'"),
        ("experiment\tcheckpoint\tchekpoint\n", "'chekpoint'; did you mean 'checkpoint'?"),
        ("experiment\tcheckpoint\tx\tx\n", "two of one name"),
        ("experiment\tcheckpoint\n", "no models"),
        ("experiment\tcheckpoint\nk\n", "line 2: expected 2 tab-separated values"),
        ("experiment\tcheckpoint\nk\ta.torch\tx\n", "line 2: expected 2 tab-separated values"),
        ("experiment\tcheckpoint\n\ta.torch\n", "line 2: experiment is empty"),
        ("experiment\tcheckpoint\nk\t\n", "line 2: give a checkpoint, a catv1 accession"),
        ("experiment\tcheckpoint\nk\tmissing.torch\n", "line 2: there is no checkpoint 'missing"),
        ("experiment\tcheckpoint\nk\ta.torch\nk\ta.torch\n", "line 3: k has 'a.torch' twice"),
        (
            "experiment\tcatv1\ttest_chroms\nk\tENCSR000EOT\tchr8\n",
            "line 2: test_chroms are those of one fold, and this row asks for several",
        ),
        (
            "experiment\tcheckpoint\toutput_length\nk\ta.torch\t1000\nk\tb.torch\t500\n",
            "line 3: output_length differs",
        ),
        ("experiment\tcheckpoint\toutput_length\nk\ta.torch\t-1\n", "line 2: output_length is"),
        ("experiment\tcheckpoint\tgroup\nk\ta.torch\tone\n", "line 2: group is 'one'"),
        ("experiment\tcheckpoint\tpeaks\nk\ta.torch\tno.bed\n", "no file of peaks 'no.bed'"),
        ("experiment\tcheckpoint\tcatv1\nk\ta.torch\tENCSR000EOT\n", "are both given"),
        ("experiment\tcheckpoint\tfolds\nk\ta.torch\t0\n", "folds are of CATv1's models"),
        ("experiment\tcatv1\nk\tENCFF000EOT\n", "line 2: catv1 is 'ENCFF000EOT'; expected"),
        ("experiment\tcatv1\tfolds\nk\tENCSR000EOT\t5\n", "line 2: folds is '5'; expected"),
        ("experiment\tcatv1\nk\tENCSR000EOT\nk\tENCSR000EOT\n", "line 3: k has 'catv1:models"),
        ("experiment\tcatv1\tassembly\nk\tENCSR000EOT\thg19\n", "but CATv1 is of hg38"),
        ("experiment\tbiosample\nk\tK562\n", "line 2: give a checkpoint, a catv1 accession"),
        ("experiment\tbiosample\tassay\nk\tlever\tDNase\n", "line 2: CATv1 has no experiment"),
        (
            "experiment\tbiosample\tassay\nk\tliver\tDNase\n",
            "line 2: 'liver' and 'DNase' are 2 experiments in CATv1; give one as catv1: "
            "ENCSR000DDD (liver, DNase-seq, female child (16 years), r = 0.90); ENCSR000CCC",
        ),
    ],
)
def test_a_faulty_sheet_is_refused_with_file_line_and_fault(write, text, message):
    path = write(text)
    with pytest.raises(InputError) as error:
        sheet.read(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def experiments(*sizes, start=0):
    return [
        Request(f"e{number}", tuple(f"{number}.{fold}" for fold in range(size)))
        for number, size in enumerate(sizes, start)
    ]


def names(plan):
    return {name: [one.name for one in bundle] for name, bundle in plan.items()}


def test_bundles_never_part_an_experiment_and_keep_the_order():
    every = experiments(2, 3, 5, 1, 1, 4)
    plan = sheet.bundles(every, 5)
    assert [one for bundle in plan.values() for one in bundle] == every
    for bundle in plan.values():
        assert sum(len(one.checkpoints) for one in bundle) <= 5


def test_an_experiment_larger_than_a_job_has_a_job_of_its_own():
    plan = sheet.bundles(experiments(1, 9, 1), 5)
    assert [len(bundle) for bundle in plan.values()] == [1, 1, 1]


def test_models_of_another_output_length_have_another_job():
    every = [Request(str(t), (f"{t}.torch",), output_length=t) for t in (1000, 500)]
    assert len(sheet.bundles(every, 5)) == 2


def test_what_each_fold_held_out(write):
    head = "experiment\tcheckpoint\ttest_chroms\n"
    rows = ("k\ta.torch\tchr8, chr20\n", "k\tb.torch\tchr1\n")
    path = write(head + "".join(rows))
    (both,) = sheet.read(path)
    assert both.test_chroms == (("chr8", "chr20"), ("chr1",))
    sheet.check_held_out(path, [both])
    (without,) = sheet.read(write(head + rows[0] + "k\tb.torch\t\n"))
    with pytest.raises(InputError, match=r"k: nothing says which contigs 'b\.torch' held out"):
        sheet.check_held_out(path, [without])
    (of_hub,) = sheet.read(write("experiment\tcatv1\nk\tENCSR000EOT\n"))
    assert of_hub.test_chroms == ()
    with pytest.raises(InputError, match=r"CATv1's metadata has no splits of all folds"):
        sheet.check_held_out(path, [of_hub])


def test_bundles_are_called_after_what_was_held_out_only_where_that_is_said(write):
    rows = "experiment\tcheckpoint\ttest_chroms\nk\ta.torch\t"
    (none,), (some,) = (sheet.read(write(f"{rows}{chroms}\n")) for chroms in ("", "chr8"))
    assert "test_chroms" not in none.predicting
    assert sheet.bundles([none], 5).keys() != sheet.bundles([some], 5).keys()


@pytest.mark.parametrize("where", [0, 2, 4])
def test_further_experiments_leave_the_bundles_that_were_there(where):
    before = experiments(2, 2, 2, 2)
    first = sheet.bundles(before, 5)
    after = before[:where] + experiments(1, 1, 1, start=7) + before[where:]
    second = sheet.bundles(after, 5, names(first))
    assert set(first) < set(second)
    new = [one.name for name in set(second) - set(first) for one in second[name]]
    assert sorted(new) == ["e7", "e8", "e9"]


def test_a_plan_stays_the_same_while_any_of_its_bundles_are_there_already():
    every = experiments(3, 3, 1, 4, 2, 2, 2, 5, 1)
    plan = sheet.bundles(every, 5)
    for chosen in range(1 << len(plan)):
        there = [item for bit, item in enumerate(names(plan).items()) if chosen >> bit & 1]
        assert sheet.bundles(every, 5, dict(there)) == plan


def test_a_changed_or_removed_experiment_makes_its_bundle_anew():
    before = experiments(2, 2, 2, 2)
    first = names(sheet.bundles(before, 4))
    changed = [before[0], Request("e1", ("other",)), *before[2:]]
    second = names(sheet.bundles(changed, 4, first))
    assert list(second.values()) == [["e0", "e1"], ["e2", "e3"]]
    assert [name in first for name in second] == [False, True]
    assert list(names(sheet.bundles(before[1:], 4, first)).values()) == [["e1"], ["e2", "e3"]]


def test_what_does_not_change_predictions_does_not_change_a_bundle():
    plain, told = (Request("e", ("x",), about=about) for about in ((), (("tissue", "b"),)))
    assert set(sheet.bundles([plain], 5)) == set(sheet.bundles([told], 5))
