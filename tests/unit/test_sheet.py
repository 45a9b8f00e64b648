import pytest

from veff import sheet
from veff.errors import InputError
from veff.sheet import Experiment


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a sheet beside three empty checkpoints, and returns its path."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.torch", "b.torch", "c.torch"):
        (tmp_path / name).touch()

    def of(text):
        path = tmp_path / "models.tsv"
        path.write_text(text)
        return path

    return of


def test_rows_of_one_experiment_are_its_folds_in_order(write):
    path = write("experiment\tcheckpoint\nk\tb.torch\nh\tc.torch\nk\ta.torch\n")
    assert sheet.read(path) == [
        Experiment("k", ("b.torch", "a.torch")),
        Experiment("h", ("c.torch",)),
    ]


def test_output_length_is_1000_unless_given(write):
    path = write("experiment\tcheckpoint\toutput_length\nk\ta.torch\t\nh\tb.torch\t500\n")
    assert [one.output_length for one in sheet.read(path)] == [1000, 500]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column 'experiment'"),
        ("experiment\n", "line 1: no column 'checkpoint'"),
        ("experiment\tcheckpoint\tchekpoint\n", "line 1: unknown column 'chekpoint'"),
        ("experiment\tcheckpoint\n", "no models"),
        ("experiment\tcheckpoint\nk\n", "line 2: expected 2 tab-separated values"),
        ("experiment\tcheckpoint\nk\ta.torch\tx\n", "line 2: expected 2 tab-separated values"),
        ("experiment\tcheckpoint\nk\t\n", "line 2: experiment and checkpoint must both"),
        ("experiment\tcheckpoint\nk\tmissing.torch\n", "line 2: there is no checkpoint 'missing"),
        ("experiment\tcheckpoint\nk\ta.torch\nk\ta.torch\n", "line 3: k has 'a.torch' twice"),
        (
            "experiment\tcheckpoint\toutput_length\nk\ta.torch\t1000\nk\tb.torch\t500\n",
            "line 3: output_length differs",
        ),
        ("experiment\tcheckpoint\toutput_length\nk\ta.torch\t-1\n", "line 2: output_length is"),
    ],
)
def test_a_faulty_sheet_is_refused_with_file_line_and_fault(write, text, message):
    path = write(text)
    with pytest.raises(InputError) as error:
        sheet.read(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_batches_never_part_an_experiment_and_keep_the_order():
    experiments = [Experiment(str(i), ("x",) * n) for i, n in enumerate([2, 3, 5, 1, 1, 4])]
    batches = sheet.batches(experiments, 5)
    assert [one for batch in batches for one in batch] == experiments
    for batch in batches:
        assert sum(len(one.checkpoints) for one in batch) <= 5


def test_an_experiment_larger_than_a_job_has_a_job_of_its_own():
    experiments = [Experiment("a", ("x",)), Experiment("b", ("x",) * 9), Experiment("c", ("x",))]
    assert [len(batch) for batch in sheet.batches(experiments, 5)] == [1, 1, 1]
