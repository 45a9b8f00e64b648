"""Files and settings that are none, or that mean harm: each ends in one line that says what and
where, in bounded time and memory."""

import contextlib
import gzip
import io
import pickle
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from cherimoya import Cherimoya

from project import ROOT
from tiny import Tiny
from veff import config, limits
from veff.cherimoya import checkpoint
from veff.errors import InputError
from veff.inputs import intervals, reference
from veff.inputs.identity import sha256
from veff.models import sheet
from veff.models.experiment import Unusable

SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


def one_line(error, *parts):
    text = str(error.value)
    assert "\n" not in text
    assert "\r" not in text
    assert len(text) < 600
    for part in parts:
        assert str(part) in text


# Checkpoints


class Asks:
    """Unpickled, it would call a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def payload(**config):
    model = Cherimoya(n_filters=16, n_layers=2, compile=False)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    made = torch.load(file, weights_only=True)
    return {**made, "config": {**made["config"], **config}}


def with_weights(change):
    def make():
        made = payload()
        return {**made, "state_dict": {k: change(k, v) for k, v in made["state_dict"].items()}}

    return make


def spoilt(value):
    def change(key, weight):
        weight = weight.clone()
        weight.view(-1)[0] = value
        return weight

    return with_weights(change)


def without(key):
    return lambda: {name: value for name, value in payload().items() if name != key}


def sixty_layers():
    """A configuration of 60 layers, over the weights of two."""
    return payload(n_layers=60)


def sixty_layers_of_their_own():
    made = payload(n_layers=60)
    two = {k: v for k, v in made["state_dict"].items() if k.startswith("blocks.0.")}
    more = {k.replace(".0.", f".{i}.", 1): v for k, v in two.items() for i in range(60)}
    return {**made, "state_dict": {**made["state_dict"], **more}}


PAYLOADS = {
    "a list": lambda: [1, 2, 3],
    "a number": lambda: 5,
    "a text": lambda: "model",
    "nothing": lambda: None,
    "a tensor": lambda: torch.zeros(3),
    "an empty dictionary": dict,
    "a dictionary of another kind": lambda: {"model": {"weight": torch.zeros(3)}, "epoch": 3},
    "weights alone": lambda: payload()["state_dict"],
    "no config": without("config"),
    "no weights": without("state_dict"),
    "a list for a config": lambda: {**payload(), "config": [1]},
    "null for a config": lambda: {**payload(), "config": None},
    "a list for weights": lambda: {**payload(), "state_dict": [torch.zeros(3)]},
    "texts for weights": lambda: {**payload(), "state_dict": {"iconv.weight": "x"}},
    "numbers for names": lambda: {**payload(), "state_dict": {1: torch.zeros(3)}},
    "one weight too many": lambda: {
        **payload(),
        "state_dict": {**payload()["state_dict"], "more": torch.zeros(1)},
    },
    "no weight at all": lambda: {**payload(), "state_dict": {}},
    "another shape": with_weights(lambda key, weight: weight[..., :1]),
    "no dimension": with_weights(lambda key, weight: weight.sum()),
    "complex": with_weights(lambda key, weight: weight.to(torch.complex64)),
    "float64": with_weights(lambda key, weight: weight.double()),
    "float16": with_weights(lambda key, weight: weight.half()),
    "bfloat16": with_weights(lambda key, weight: weight.bfloat16()),
    "whole numbers": with_weights(lambda key, weight: weight.long()),
    "truth values": with_weights(lambda key, weight: weight.bool()),
    "sparse": with_weights(lambda key, weight: weight.to_sparse()),
    "meta": with_weights(lambda key, weight: weight.to("meta")),
    "NaN": spoilt(float("nan")),
    "infinity": spoilt(float("inf")),
    "minus infinity": spoilt(-float("inf")),
    "60 layers": sixty_layers,
    "60 layers of their own": sixty_layers_of_their_own,
    "no layer": lambda: payload(n_layers=0),
    "a billion layers": lambda: payload(n_layers=10**9),
    "half a layer": lambda: payload(n_layers=2.5),
    "layers in words": lambda: payload(n_layers="two"),
    "layers of truth": lambda: payload(n_layers=True),
    "trimming of a billion": lambda: payload(trimming=10**9),
    "trimming of -100": lambda: payload(trimming=-100),
    "trimming of half a base": lambda: payload(trimming=46.5),
    "trimming in words": lambda: payload(trimming="46"),
    "4,096 filters over the weights of 16": lambda: payload(n_filters=4096),
    "a billion filters": lambda: payload(n_filters=10**9),
    "no filter": lambda: payload(n_filters=0),
    "no group": lambda: payload(signal_groups=[]),
    "groups of nothing": lambda: payload(signal_groups=[0]),
    "groups in words": lambda: payload(signal_groups="two"),
    "a billion channels": lambda: payload(signal_groups=[10**9]),
    "a billion control tracks": lambda: payload(n_control_tracks=10**9),
    "less than no control track": lambda: payload(n_control_tracks=-1),
    "expansion of a billion": lambda: payload(expansion=10**9),
    "a scale that is none": lambda: payload(residual_scale=float("nan")),
    "a scale in words": lambda: payload(residual_scale="0.15"),
    "a key of another version": lambda: payload(attention=True),
    "compiled": lambda: payload(compile=True),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*parts):
    """What inspecting bad.torch says, which must be why it cannot be used."""
    began = time.monotonic()
    (told,) = checkpoint.inspect([sheet.Request("x", ("bad.torch",))], {})
    assert time.monotonic() - began < 30
    assert isinstance(told, Unusable)
    said = told.error
    assert said.startswith("bad.torch: ")
    assert "\n" not in said
    assert len(said) < 400
    assert "weights_only" not in said
    assert "likely succeed" not in said
    for part in parts:
        assert part in said
    return said


@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_file_that_is_no_checkpoint_is_refused_in_one_line(folder, kind):
    torch.save(PAYLOADS[kind](), "bad.torch")
    refused()


def test_the_checkpoint_that_the_others_were_made_from_is_accepted(folder):
    torch.save(payload(), "good.torch")
    (told,) = checkpoint.inspect([sheet.Request("x", ("good.torch",))], {})
    assert told.architecture.n_layers == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("complex", "are complex64, expected float32"),
        ("float64", "are float64, expected float32"),
        ("60 layers", "n_layers is 60; expected a whole number from 1 to 16"),
        ("trimming of a billion", "trimming is 1000000000; expected a whole number from 0"),
        ("trimming of -100", "trimming is -100; expected a whole number from 0"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_said(folder, change, says):
    torch.save(PAYLOADS[change](), "bad.torch")
    refused(says)


def a_pickle(*objects, protocol=2):
    return lambda: pickle.dumps(objects[0] if len(objects) == 1 else objects, protocol)


def nested(opener, depth):
    return lambda: b"\x80\x02" + opener * depth + b"."


def billion():
    """Lists in lists, ten times ten times …: short as a pickle, endless when it is looked at."""
    code = b"\x80\x02]q\x00"
    for level in range(1, 12):
        code += (
            b"](" + b"".join(b"h" + bytes([level - 1]) for _ in range(10)) + b"eq" + bytes([level])
        )
    return code + b"."


BYTES = {
    "empty": lambda: b"",
    "a TSV": lambda: b"experiment\tcheckpoint\nx\tx.torch\n",
    "a VCF": lambda: b"##fileformat=VCFv4.2\n#CHROM\tPOS\n",
    "JSON": lambda: b'{"config": {}, "state_dict": {}}',
    "zeros": lambda: bytes(5000),
    "ones": lambda: b"\xff" * 5000,
    "gzip": lambda: gzip.compress(b"x" * 1000),
    "a pickled list": a_pickle([1, 2]),
    "a pickled list of protocol 5": a_pickle([1, 2], protocol=5),
    "a call": a_pickle(Asks(print, "it ran")),
    "a call of the system": a_pickle(Asks(__import__("os").system, "touch it-ran")),
    "a call of eval": a_pickle(Asks(eval, "open('it-ran', 'w')")),
    "a call of getattr": a_pickle(Asks(getattr, [], "append")),
    "an import": lambda: b"\x80\x02cposix\nsystem\n.",
    "lists in lists": nested(b"](", 100_000),
    "tuples in tuples": nested(b"(", 100_000),
    "ten times ten times": billion,
    "no end": lambda: b"\x80\x02]",
    "a pop of nothing": lambda: b"\x80\x020.",
    "a memo of nothing": lambda: b"\x80\x02h\x05.",
    "a text of 4 GB": lambda: b"\x80\x02X\xff\xff\xff\xff.",
}


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_that_are_no_checkpoint_are_refused_in_one_line(folder, kind):
    (folder / "bad.torch").write_bytes(BYTES[kind]())
    refused()
    assert not (folder / "it-ran").exists()


def archive(folder, **files):
    with zipfile.ZipFile(folder / "bad.torch", "w") as file:
        for name, data in files.items():
            file.writestr(f"bad/{name.replace('_', '.')}", data)


def test_an_archive_with_a_call_in_it_is_refused_and_named(folder):
    archive(
        folder, data_pkl=a_pickle(Asks(__import__("os").system, "touch it-ran"))(), version="3"
    )
    refused("not a file of weights alone", "posix.system")
    assert not (folder / "it-ran").exists()


def test_a_pickle_that_takes_minutes_is_stopped(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 1)
    (folder / "bad.torch").write_bytes(b"\x80\x02](" + b"K\x01" * 10_000_000 + b"e.")
    refused("more than 1 s")


def test_a_file_that_takes_too_much_memory_is_stopped(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "MEMORY", 1 << 30)
    torch.save(payload() | {"config": {"n_filters": 4096, "expansion": 64}}, "bad.torch")
    refused("more than 1 GB of memory")  # 40 kB, for 78 GB


def test_limits_are_those_of_the_child_alone():
    before = [limits.resource.getrlimit(limits.resource.RLIMIT_AS)]
    assert limits.within(5, 1 << 30, sum, [1, 2]) == 3
    assert before == [limits.resource.getrlimit(limits.resource.RLIMIT_AS)]


def endless():
    while True:
        pass


def big(n):
    return len(bytearray(n))


def crash():
    limits.os.abort()


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (endless, (), "more than 1 s"),
        (big, (3 << 30,), "more than 1 GB of memory"),
        (crash, (), "SIGABRT"),
        (limits.os._exit, (3,), "status 3"),
    ],
)
def test_a_call_that_takes_too_much_is_stopped(function, arguments, says):
    began = time.monotonic()
    with pytest.raises(limits.Exceeded, match=says):
        limits.within(1, 1 << 30, function, *arguments)
    assert time.monotonic() - began < 20


def test_what_a_limited_call_raises_is_raised_here():
    with pytest.raises(ValueError, match="invalid literal"):
        limits.within(5, 1 << 30, int, "x")


# Scores


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("what", ["linear.weight", "fconv.weight"])
def test_scores_that_are_not_finite_are_an_error_that_names_the_model(tiny, what):
    sound = tiny.experiment("sound", (0, 1))
    broken = tiny.experiment(f"broken {what}", (0, 1))
    path = broken.folds[1].path
    made = torch.load(path, weights_only=True)
    made["state_dict"][what] = made["state_dict"][what].sign() * 1e38
    torch.save(made, path)
    folds = (broken.folds[0], replace(broken.folds[1], sha256=sha256(path)))
    broken = replace(broken, folds=folds)
    with pytest.raises(InputError, match="not a finite number") as error:
        tiny.score(tiny.alleles(8), sound, broken)
    one_line(error, broken.name, path)


# Settings


@pytest.fixture
def given(folder):
    for key in ("variants", "reference", "models"):
        (folder / key).touch()
    return {"variants": "variants", "reference": "reference", "models": "models", "outdir": "out"}


def nest(key, value):
    *above, last = key.split(".")
    made = {last: value}
    for part in reversed(above):
        made = {part: made}
    return made


WHOLE = [
    "chunk_size", "batch_size", "models_per_job", "max_allele_length", "info_experiments",
    "nulls.n", "nulls.seed", "top.n", "top.shuffles", "autotune.max_size_mb",
]  # fmt: skip
NAN = float("nan")


@pytest.mark.parametrize("key", WHOLE)
@pytest.mark.parametrize("value", [1e1, "1e1", "10.0"])
def test_a_whole_number_is_one_however_it_is_written(given, key, value):
    made = given | nest(key, value)
    config.typed(made)
    config.check(made, SCHEMA)
    for part in key.split("."):
        made = made[part]
    assert type(made) is int
    assert made == 10


@pytest.mark.parametrize("key", WHOLE)
@pytest.mark.parametrize("value", [NAN, float("inf"), 2.5, 1e300, -1, True, "x", [1]])
def test_a_number_that_is_none_is_told(given, key, value):
    made = given | nest(key, value)
    config.typed(made)
    with pytest.raises(InputError, match=f"config: {key}: got") as error:
        config.check(made, SCHEMA)
    one_line(error)


@pytest.mark.parametrize("key", ["max_ref_mismatch", "fdr", "autotune.max_age_days"])
@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf"), "1e999"])
def test_nan_and_infinity_switch_nothing_off(given, key, value):
    made = given | nest(key, value)
    config.typed(made)
    with pytest.raises(InputError, match=f"config: {key}: got (nan|-?inf); allowed") as error:
        config.check(made, SCHEMA)
    one_line(error)


TEXTS = [
    "variants", "reference", "models", "outdir", "contig_aliases", "catv1_revision",
    "annotations.genes", "nulls.regions", "nulls.dir", "autotune.seed", "autotune.cache_dir",
]  # fmt: skip


@pytest.mark.parametrize("key", TEXTS)
@pytest.mark.parametrize("value", ["a{b}.x", "a{b.x", "a}", "{}", "a\nb", "a\0b", "a\x1b[0m"])
def test_a_text_that_snakemake_reads_otherwise_is_told(given, key, value):
    with contextlib.suppress(ValueError):  # of a NUL
        Path(value).touch()
    with pytest.raises(InputError, match=f"config: {key}: ") as error:
        config.check(given | nest(key, value), SCHEMA)
    one_line(error)


@pytest.mark.parametrize("key", ["outdir", "nulls.dir"])
@pytest.mark.parametrize("value", ["models", "models/below", "nowhere_to/go", ""])
def test_a_folder_that_cannot_be_one_is_told(given, folder, key, value):
    (folder / "nowhere_to").symlink_to("nowhere")
    with pytest.raises(InputError, match=rf"config: {key}: '\w*' is not a folder") as error:
        config.check(given | nest(key, value), SCHEMA)
    one_line(error)


@pytest.mark.parametrize("deep", ["[", '{"a":'])
def test_deep_json_in_a_setting_stays_a_text(given, deep):
    made = given | {"chunk_size": deep * 100_000}
    config.typed(made)
    with pytest.raises(InputError, match="config: chunk_size: got") as error:
        config.check(made, SCHEMA)
    one_line(error)


SHEETS = {
    "a brace in a checkpoint": ("experiment\tcheckpoint\nx\ta{b}.torch\n", "has a brace"),
    "a brace in peaks": ("experiment\tcheckpoint\tpeaks\nx\tm.torch\ta{b}.bed\n", "has a brace"),
    "5,000 digits": (
        f"experiment\tcheckpoint\toutput_length\nx\tm.torch\t{'9' * 5000}\n",
        "output_length is",
    ),
    "a group of 5,000 digits": (
        f"experiment\tcheckpoint\tgroup\nx\tm.torch\t{'9' * 5000}\n",
        "group is",
    ),
    "a fold of 5,000 digits": (
        f"experiment\tcatv1\tfolds\nx\tENCSR000EOT\t{'9' * 5000}\n",
        "folds is",
    ),
    "digits of another script": (
        "experiment\tcheckpoint\tgroup\nx\tm.torch\t\u0663\n",
        "group is",
    ),
    "a NUL in a checkpoint": ("experiment\tcheckpoint\nx\tm\0.torch\n", None),
    "an open quote": ('experiment\tcheckpoint\n"x\tm.torch\n', None),
    "a cell of a megabyte": (f"experiment\tcheckpoint\nx\t{'m' * 2**20}\n", None),
    "Latin-1": (b"experiment\tcheckpoint\nx\tm\xe9.torch\n", None),
    "UTF-16": ("experiment\tcheckpoint\nx\tm.torch\n".encode("utf-16"), None),
    "a folder of that name": ("experiment\tcheckpoint\nx\t.\n", "there is no checkpoint"),
}


@pytest.mark.parametrize("kind", SHEETS)
def test_a_sheet_that_is_none_is_told(folder, kind):
    text, says = SHEETS[kind]
    (folder / "m.torch").touch()
    (folder / "sheet.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=says) as error:
        sheet.read("sheet.tsv")
    one_line(error, "sheet.tsv")


# Genomes and intervals

FASTA = {
    "CR alone": (b">a\rACGT\r>b\rACGT\r", "carriage return alone"),
    "CR alone, long": (b">a\r" + b"ACGT\r" * 10_000_000 + b">b\rACGT\r", "carriage return alone"),
    "CR alone, gzip": (gzip.compress(b">a\rACGT\r"), "carriage return alone"),
    "CR within a header": (b">a\rACGT\n>b\nACGT\n", "carriage return alone"),
    "CR before a second contig": (b">a\nACGT\r>b\nACGT\n", "'>' in the sequence of 'a'"),
    "NUL": (b">a\nAC\0GT\n", "in the sequence of 'a'"),
    "a protein": (b">a\nMKLV*\n", "in the sequence of 'a'"),
    "no name": (b">\nACGT\n", "without a contig's name"),
    "two of a name": (b">a\nACGT\n>a\nACGT\n", "occurs twice"),
    "no contig": (b"ACGT\n", "starts with"),
    "empty": (b"", "holds no contig"),
    "cut gzip": (gzip.compress(b">a\n" + b"ACGT\n" * 1000)[:-20], "damaged gzip"),
}


@pytest.mark.parametrize("kind", FASTA)
def test_a_genome_that_is_none_is_told(folder, kind):
    data, says = FASTA[kind]
    (folder / "bad.fa").write_bytes(data)
    with pytest.raises(InputError, match=says) as error:
        reference.build(folder / "bad.fa", folder / "out")
    one_line(error, "bad.fa")
    assert not (folder / "out/bases.u8").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_genome_keeps_every_contig_whatever_its_line_ends(folder, end):
    (folder / "good.fa").write_bytes(end.join([">a x", "ACGT", "AC", ">b", "GG", ""]).encode())
    reference.build(folder / "good.fa", folder / "out")
    genome = reference.Reference.open(folder / "out")
    assert (genome.names, genome.lengths.tolist()) == (["a", "b"], [6, 2])


LONG = "9" * 5000
ROWS = {
    "a start of 5,000 digits": f"one\t{LONG}\t20\tx",
    "an end of 5,000 digits": f"one\t10\t{LONG}\tx",
    "digits of another script": "one\t\u0661\u0660\t\u0662\u0660\tx",
    "a sign": "one\t+10\t20\tx",
    "minus": "one\t-10\t20\tx",
    "a point": "one\t10.0\t20\tx",
    "an exponent": "one\t1e1\t20\tx",
    "an underscore": "one\t1_0\t20\tx",
    "empty": "one\t\t20\tx",
    "reversed": "one\t20\t10\tx",
    "nothing": "one\t10\t10\tx",
    "past the end": "one\t10\t99999999\tx",
    "2^63": f"one\t10\t{2**63}\tx",
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("read", [intervals.bed, intervals.named, intervals.genes])
def test_a_bed_row_that_is_no_interval_is_told(tiny, folder, kind, read):
    (folder / "bad.bed").write_text(f"one\t1\t5\tx\n{ROWS[kind]}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2") as error:
        list(read(folder / "bad.bed", tiny.reference))
    one_line(error, "bad.bed")


@pytest.mark.parametrize("start", [LONG, "\u0663", "-1", "0", "1e1", "", str(2**63)])
def test_a_gtf_row_that_is_no_interval_is_told(tiny, folder, start):
    good = 'one\tx\tgene\t5\t20\t.\t+\t.\tgene_id "x"'
    (folder / "bad.gtf").write_text(f"{good}\n{good.replace('5', start, 1)}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2") as error:
        list(intervals.genes(folder / "bad.gtf", tiny.reference))
    one_line(error, "bad.gtf")
