"""The autotune cache's rooms one by one; `test_autotune_standin.py` has them work together."""

import contextlib
import fcntl
import importlib.util
import json
import os
import select
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from veff import autotune
from veff.autotune import fingerprint, gpus, node, seeds, warm
from veff.autotune.gpus import Gpu
from veff.errors import InputError
from veff.models.architecture import Architecture

STANDIN = Path(__file__).parents[1] / "standin"
SITE = STANDIN.with_name("site")
WORKFLOW = Path(__file__).parents[2] / "workflow"
H200 = Gpu("GPU-1", "NVIDIA H200", (9, 0), 16896)
MARK = {"GPU": "NVIDIA H200", "triton": "3.7.1"}
WORK = [{"batch_size": 4}, {"batch_size": 8}]


def python(code, **variables):
    """What a new Python process with the stand-in GPUs prints."""
    path = os.pathsep.join(
        [str(SITE), str(STANDIN), str(WORKFLOW), os.environ.get("PYTHONPATH", "")]
    )
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


# The switch


def test_switching_on_after_cherimoya_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "cherimoya", object())
    with pytest.raises(RuntimeError, match="before cherimoya"):
        autotune.enable()


@pytest.mark.parametrize("kept", [True, False])
def test_a_cherimoya_that_asks_for_the_cache_itself_may_come_first(monkeypatch, kept):
    kernels = SimpleNamespace(one=SimpleNamespace(cache_results=True))
    kernels.other = SimpleNamespace(cache_results=kept)
    for name, module in (("cherimoya", object()), ("cherimoya.cheri", kernels)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "veff.cherimoya.kernels", raising=False)
    with (
        contextlib.nullcontext() if kept else pytest.raises(RuntimeError, match="before cherimoya")
    ):
        assert autotune.enable()


@pytest.mark.parametrize(("package", "old"), [("cherimoya", "0.3.0"), ("triton", "3.4.0")])
def test_too_old_a_package_is_refused_in_one_line(monkeypatch, package, old):
    found = fingerprint.version
    monkeypatch.setattr(fingerprint, "version", lambda n: old if n == package else found(n))
    with pytest.raises(InputError, match=f"^{package} {old} is installed, but .* or later is ne"):
        autotune.enable()


def test_without_triton_nothing_is_switched_on(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "triton" else found(name)
    )
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)
    monkeypatch.delitem(sys.modules, "cherimoya", raising=False)
    assert autotune.enable() is False
    assert "TRITON_CACHE_AUTOTUNING" not in os.environ


@pytest.mark.parametrize("first", ["", "import triton; triton.knobs.autotuning.cache = False; "])
def test_the_kernels_have_the_cache_on(first):
    code = f"{first}from veff import autotune; autotune.enable(); import standin; "
    assert python(code + "standin.kernels(); print(autotune.report()['knob'])") == "True\n"


def test_a_kernel_without_the_cache_is_reported():
    code = "import standin; standin.kernels(); from veff import autotune; "
    code += "print(autotune.report()['knob'])"
    assert python(code, TRITON_CACHE_AUTOTUNING="0") == "False\n"


def test_enabling_imports_neither_torch_nor_triton():
    code = (
        "from veff import autotune; import sys; autotune.enable({'device': 'cpu'}, [{}]); "
        "print({'torch', 'triton', 'cherimoya'} & set(sys.modules))"
    )
    assert python(code) == "set()\n"


def test_cuda_without_a_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(gpus, "torch_has_cuda", lambda: False)
    with pytest.raises(InputError, match=r"promised an NVIDIA GPU, and .* device: cpu"):
        autotune.claim({"device": "cuda"})


def test_a_gpu_model_without_a_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(gpus, "torch_has_cuda", lambda: False)
    with pytest.raises(InputError, match=r"promised an NVIDIA GPU \(h200\), and .* shows it none"):
        autotune.claim({"device": "auto", "gpu_model": "h200"})


def test_setup_without_a_gpu_leaves_no_seed(tmp_path):
    said = autotune.setup({"device": "cpu"}, WORK, tmp_path / "autotune")
    assert (said["gpu"], said["seed"], said["node"]) == (None, None, "none")
    assert list((tmp_path / "autotune").iterdir()) == []


def test_work_names_each_architecture_and_task_once():
    small = Architecture(1, 1, 1, (1,), 0, 1, 1)
    rows = [small, Architecture(1, 1, 1, (1,), 0, 1, 1), replace(small, n_filters=2)]
    how = {"precision": "fast", "engine": "fast"}

    def told(items):
        return [(item["task"], item["n_filters"], item["batch_size"]) for item in items]

    scoring = [("score", 1, 8), ("score", 2, 8), ("score", 1, 4), ("score", 2, 4)]
    assert told(autotune.work(rows, [8, 4], **how)) == scoring
    attributing = [("attribute", 1, 20), ("attribute", 2, 20)]
    assert told(autotune.work(rows, [8, 4], shuffles=20, **how)) == scoring + attributing


def test_reports_add_up_to_the_last_line():
    one = {**autotune.report(), "benchmarks": 3, "node": "warm"}
    total = autotune.total([one, {**one, "benchmarks": 0, "node": "restored"}])
    assert total["nodes"] == {"restored": 1, "warm": 1}
    assert autotune.last_line(total) == "autotune: 3 benchmarks in 2 scoring jobs"


# gpus: which one


@pytest.fixture
def three(monkeypatch):
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.setenv("STANDIN_GPUS", "A; B; C")
    yield
    sys.modules.pop("pynvml", None)


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (None, "ABC"),
        ("2,0", "CA"),
        ("GPU-00000001", "B"),
        ("GPU-00000002,1", "CB"),
        ("0,7,1", "A"),  # as CUDA does: what follows a word that names nothing is ignored
        ("-1", ""),
        ("", ""),
    ],
)
def test_only_gpus_that_cuda_would_show_are_seen(three, monkeypatch, chosen, names):
    if chosen is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert "".join(gpu.name for gpu in gpus.visible()) == names


@pytest.mark.parametrize(
    ("name", "models", "others"),
    [
        ("NVIDIA H200", "h200 H200 nvidia_h200", "h20 200 h100 gh200"),
        ("NVIDIA A100-SXM4-80GB", "a100 a100_80gb nvidia_a100_sxm4_80gb", "a10 a100_40gb a1008"),
        ("NVIDIA H100 80GB HBM3", "h100", "h1 gh100 h100_nvl"),
        ("NVIDIA GeForce RTX 4090", "rtx4090 rtx_4090 4090", "rtx409 rtx4090ti"),
        ("NVIDIA L40S", "l40s", "l40 l4"),
    ],
)
def test_a_model_is_told_from_its_relatives(name, models, others):
    assert [model for model in models.split() if not gpus.is_model(name, model)] == []
    assert [model for model in others.split() if gpus.is_model(name, model)] == []


CLAIM = (
    "from veff.autotune import gpus; import os, sys; "
    "gpu = gpus.claim(os.environ.get('MODEL')); "
    "print(gpu.name, os.environ.get('CUDA_VISIBLE_DEVICES'), flush=True); "
    "sys.stdin.readline() and (gpus.turn(), print('computing', flush=True)); sys.stdin.read()"
)


def compute(process):
    """Have a claiming process take its turn."""
    process.stdin.write("\n")
    process.stdin.flush()


@contextlib.contextmanager
def claiming(**variables):
    """A process that claims a GPU and holds it: (process, what it says)."""
    path = os.pathsep.join(
        [str(SITE), str(STANDIN), str(WORKFLOW), os.environ.get("PYTHONPATH", "")]
    )
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    with subprocess.Popen(
        [sys.executable, "-c", CLAIM],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_jobs_take_different_gpus_and_a_killed_one_frees_its_own():
    uuid = f"{os.getpid()}-{time.time_ns()}"  # names of locks that no other test run shares
    two = {"STANDIN_GPUS": "A; B", "STANDIN_UUID": uuid, "CUDA_VISIBLE_DEVICES": "1,0"}
    with claiming(**two) as first:
        assert first.stdout.readline() == f"B {uuid}1\n"
        with claiming(**two) as second:
            assert second.stdout.readline() == f"A {uuid}0\n"
            with claiming(**two) as third:  # waits
                first.kill()
                assert third.stdout.readline() == f"B {uuid}1\n"
    for lock in Path(f"/tmp/veff-gpus-{os.getuid()}").glob(f"{uuid}*"):
        lock.unlink()


def test_of_two_models_in_one_machine_the_wanted_one_is_taken():
    uuid = f"{os.getpid()}-{time.time_ns()}"
    with claiming(STANDIN_GPUS="NVIDIA H100; NVIDIA H200", STANDIN_UUID=uuid, MODEL="h200") as one:
        assert one.stdout.readline() == f"NVIDIA H200 {uuid}1\n"
    for lock in Path(f"/tmp/veff-gpus-{os.getuid()}").glob(f"{uuid}*"):
        lock.unlink()


def test_a_job_on_another_model_than_the_wanted_is_an_error_that_says_what_to_do(three):
    with pytest.raises(InputError, match=r"gpu_model is h200, but the GPU of this job is A, B, C"):
        gpus.claim("h200")


def test_of_jobs_that_see_one_gpu_all_start_at_once_and_compute_one_after_the_other():
    uuid = f"{os.getpid()}-{time.time_ns()}"
    one = {"STANDIN_GPUS": "A; B", "STANDIN_UUID": uuid, "CUDA_VISIBLE_DEVICES": "1"}
    with claiming(**one) as first, claiming(**one) as second:
        assert first.stdout.readline() == second.stdout.readline() == "B 1\n"
        compute(first)
        assert first.stdout.readline() == "computing\n"
        compute(second)
        assert not select.select([second.stdout], [], [], 0.3)[0]
        first.kill()
        assert second.stdout.readline() == "computing\n"
        # Jobs to which a scheduler gave parts of that GPU do not wait for it, nor for each other.
        with claiming(**one, SLURM_JOB_ID="1") as third, claiming(**one, JOB_ID="2") as fourth:
            for job in (third, fourth):
                compute(job)
                assert [job.stdout.readline() for _ in range(2)] == ["B 1\n", "computing\n"]
    for lock in Path(f"/tmp/veff-gpus-{os.getuid()}").glob(f"{uuid}*"):
        lock.unlink()


def test_kernels_are_compiled_before_the_gpu_is_taken_and_timed_after(monkeypatch):
    done = []
    monkeypatch.setattr(warm.ahead, "compile_all", lambda *_: done.append("compile"))
    monkeypatch.setattr(warm.gpus, "turn", lambda: done.append("take"))
    monkeypatch.setattr(warm, "triton_parts", dict)  # needs a GPU
    warm._fill(lambda *_: done.append("time"), [{}])
    assert done == ["compile", "take", "time"]


# node: where


def test_the_folder_is_the_first_temporary_one_that_code_can_be_loaded_from(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "a"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "b"))
    assert node.root(None).parent.name == "a"
    noexec = {str(tmp_path / "a"): ("tmpfs", ["rw", "noexec"])}
    monkeypatch.setattr(node, "mount", lambda path: noexec.get(str(path), ("ext4", ["rw"])))
    assert node.root(None).parent.name == "b"
    with pytest.raises(InputError, match="noexec"):
        node.root(str(tmp_path / "a"))


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "gpfs", "beegfs"])
def test_a_network_file_system_is_warned_of(tmp_path, monkeypatch, caplog, kind):
    monkeypatch.setattr(node, "mount", lambda path: (kind, ["rw"]))
    node.root(str(tmp_path))
    assert f"network file system ({kind})" in caplog.text


def test_the_mount_of_a_path_is_the_innermost_one():
    assert node.mount(Path("/proc/self"))[0] == "proc"
    assert node.mount(Path("/"))[0] not in ("", "proc")


def caches(root, n):
    for i in range(n):
        (root / f"GPU.mark.{i}").mkdir(parents=True)
        (root / f"GPU.mark.{i}" / "seed.tar").write_bytes(bytes(2**20))
        days = 86400 * (n - i)
        os.utime(root / f"GPU.mark.{i}" / "seed.tar", (time.time() - days,) * 2)


def test_pruning_takes_the_old_and_then_the_least_recently_used(tmp_path):
    caches(tmp_path, 5)  # used 5, 4, 3, 2 and 1 days ago
    node.prune(tmp_path, max_age_days=4.5, max_size_mb=100)
    assert {p.name for p in tmp_path.iterdir()} == {
        "GPU.mark.1",
        "GPU.mark.2",
        "GPU.mark.3",
        "GPU.mark.4",
    }
    node.prune(tmp_path, max_age_days=30, max_size_mb=2)
    assert {p.name[-1] for p in tmp_path.iterdir()} == set("34")


def test_pruning_leaves_what_another_job_uses(tmp_path):
    caches(tmp_path, 1)
    with (tmp_path / "GPU.mark.0" / "seed.tar").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        node.prune(tmp_path, max_age_days=0.5, max_size_mb=100)
    assert (tmp_path / "GPU.mark.0").is_dir()


def test_use_refuses_a_cache_that_was_pruned_meanwhile(tmp_path):
    assert node.use(tmp_path / "gone" / "seed.tar") is False


def test_a_lock_of_a_killed_process_blocks_nobody(tmp_path):
    code = (
        "from veff.autotune import node; import sys, time; "
        "lock = node.lock(sys.argv[1]); lock.__enter__(); "
        "print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "lock"],
        env={**os.environ, "PYTHONPATH": str(WORKFLOW)},
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        with node.lock(tmp_path / "lock"):
            pass


# fingerprint


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (H200._replace(name="NVIDIA H100"), "GPU NVIDIA H200, here NVIDIA H100"),
        (H200._replace(cores=1), "GPU cores 16896, here 1"),
        (H200._replace(capability=(10, 0)), "capability 9.0, here 10.0"),
    ],
)
def test_another_kind_of_gpu_has_another_fingerprint(other, part):
    assert fingerprint.differences(fingerprint.here(H200), fingerprint.here(other)) == part


def test_a_seed_of_another_cherimoya_is_named_by_its_version(monkeypatch):
    ours = fingerprint.here(H200)
    monkeypatch.setattr(fingerprint, "version", lambda name: "0.2.0")
    differences = fingerprint.differences(fingerprint.here(H200), ours)
    assert differences.startswith("cherimoya 0.2.0, here 0.3.1")


def test_two_gpus_of_a_kind_have_one_fingerprint():
    assert fingerprint.here(H200) == fingerprint.here(H200._replace(uuid="GPU-2"))


def test_the_fingerprint_has_the_compiler_s_variables_but_no_places(monkeypatch):
    before = fingerprint.here(H200)
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert fingerprint.here(H200) == before
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    assert "TRITON_F32_DEFAULT" in fingerprint.differences(before, fingerprint.here(H200))


def test_another_triton_or_other_kernels_have_another_fingerprint(tmp_path, monkeypatch):
    before = fingerprint.here(H200)
    for package, file in [("cherimoya", "cheri.py"), ("triton", "_C/libtriton.so")]:
        (tmp_path / package / file).parent.mkdir(parents=True)
        (tmp_path / package / file).write_text("another")
    monkeypatch.setattr(fingerprint, "_package", lambda name: tmp_path / name)
    fingerprint._triton.cache_clear()
    differences = fingerprint.differences(before, fingerprint.here(H200))
    fingerprint._triton.cache_clear()
    assert "kernels" in differences
    assert "triton's files" in differences


# seeds


def make(folder, text="choice", mark=MARK, work=WORK):
    """A seed of two entries, of which one is a group with absolute paths."""
    cache = folder / "cache"
    for entry, file, data in [
        ("AAA", "k.autotune.json", text),
        ("BBB", "k.cubin", "binary"),
        ("BBB", "__grp__k.json", json.dumps({"child_paths": {"k.cubin": f"{cache}/BBB/k.cubin"}})),
        ("CCC", "unused", "unused"),
    ]:
        (cache / entry).mkdir(parents=True, exist_ok=True)
        (cache / entry / file).write_text(data)
    parts = {"fingerprint": mark, "work": work, "triton": {}}
    return seeds.pack(cache, ["AAA", "BBB"], folder / "seed.tar", **parts)


def test_the_same_choices_make_the_same_archive_wherever_they_were_made(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = make(tmp_path / "here"), make(tmp_path / "there")
    assert here.path.read_bytes() == there.path.read_bytes()
    assert str(tmp_path).encode() not in here.path.read_bytes()


def test_a_seed_is_named_by_gpu_and_told_apart_by_its_choices(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    a, b = make(tmp_path / "a"), make(tmp_path / "b", "other choice")
    assert a.name == b.name
    assert a.name.startswith("NVIDIA-H200.")
    assert a.id != b.id


def test_only_the_named_entries_are_packed_and_unpacked(tmp_path):
    make(tmp_path).unpack(tmp_path / "out")
    files = {str(p.relative_to(tmp_path / "out")) for p in tmp_path.glob("out/*/*")}
    assert files == {"AAA/k.autotune.json", "BBB/k.cubin", "BBB/__grp__k.json"}


def test_a_seed_serves_a_part_of_its_work_and_no_other(tmp_path):
    seed = make(tmp_path)
    assert seed.misfit(MARK, WORK[:1]) == ""
    assert "batch_size" in seed.misfit(MARK, [{"batch_size": 16}])


def test_what_differs_is_said(tmp_path, caplog):
    seed = make(tmp_path)
    here = {"GPU": "NVIDIA H100", "triton": "3.7.1"}
    assert seeds.find([seed.path], here, WORK, 30) is None
    assert "GPU NVIDIA H200, here NVIDIA H100" in caplog.text
    assert "triton" not in caplog.text


@pytest.mark.parametrize("damage", ["truncated", "empty", "not a tar", "open to others"])
def test_a_seed_that_cannot_be_trusted_is_not_used(tmp_path, caplog, damage):
    path = make(tmp_path).path
    data = path.read_bytes()
    if damage == "open to others":
        path.chmod(0o666)
    else:
        path.write_bytes({"truncated": data[:700], "empty": b"", "not a tar": b"x" * 9999}[damage])
    assert seeds.find([path], MARK, WORK, 30) is None
    assert "is not used" in caplog.text


def test_a_seed_with_one_damaged_file_is_not_used(tmp_path, caplog):
    path = make(tmp_path).path
    path.write_bytes(path.read_bytes().replace(b"binary", b"tamper"))
    assert seeds.find([path], MARK, WORK, 30) is None
    assert "its file BBB/k.cubin is damaged" in caplog.text


def test_a_seed_cannot_write_outside_its_folder(tmp_path):
    evil = {"../evil": seeds.sha256(b"x")}
    manifest = {"format": 1, "fingerprint": MARK, "work": WORK, "triton": {}, "files": evil}
    with tarfile.open(tmp_path / "seed.tar", "w") as tar:
        for name, data in [("seed.json", json.dumps(manifest).encode()), ("../evil", b"x")]:
            (tmp_path / "member").write_bytes(data)
            tar.add(tmp_path / "member", name)
    with pytest.raises(ValueError, match="has a name that no cache has"):
        seeds.Seed(tmp_path / "seed.tar").unpack(tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_of_two_nodes_that_benchmarked_at_once_the_first_ones_choice_is_kept(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    a, b = make(tmp_path / "a"), make(tmp_path / "b", "other choice")
    assert seeds.publish(a, tmp_path / "run").id == a.id
    assert seeds.publish(b, tmp_path / "run").id == a.id
    assert len(list((tmp_path / "run").iterdir())) == 1


def test_a_damaged_seed_in_the_run_is_replaced(tmp_path):
    seed = make(tmp_path)
    published = seeds.publish(seed, tmp_path / "run")
    whole = published.path.read_bytes()
    for damaged in (b"damaged", whole.replace(b"binary", b"tamper")):
        published.path.write_bytes(damaged)
        assert seeds.publish(seed, tmp_path / "run").id == seed.id
        assert published.path.read_bytes() == whole


def test_a_site_keeps_its_seed(tmp_path):
    seed = make(tmp_path)
    seeds.publish(seed, tmp_path / "run")
    (kept,) = autotune.keep(tmp_path / "run", str(tmp_path / "site"))
    assert seeds.find([tmp_path / "site"], MARK, WORK, 30).id == seed.id
    assert kept.parent == tmp_path / "site"
    with pytest.raises(InputError, match="no seed"):
        autotune.keep(tmp_path / "site" / "none", str(tmp_path / "site"))
    with pytest.raises(InputError, match="names no folder"):
        autotune.keep(tmp_path / "run", None)


def standing_in(script, folder):
    """What a script of `tests/standin` prints of its work in this folder."""
    path = os.pathsep.join(
        [str(SITE), str(STANDIN), str(WORKFLOW), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, STANDIN / script, folder]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# ahead and known: [compilations, launches] in this process, of a kernel of three configurations.


@pytest.fixture(scope="module")
def in_advance(tmp_path_factory):
    return standing_in("in_advance.py", tmp_path_factory.mktemp("ahead"))


def test_all_configurations_are_compiled_in_forks_before_any_is_launched(in_advance):
    assert in_advance["ahead"] == [0, 0]
    assert in_advance["work"] == [0, 3 + 1]  # timed, and run; that other work failed is nothing
    assert in_advance["other work"] == [3, 3 + 1]  # as ever


def test_a_known_choice_is_taken_after_one_timing(in_advance):
    assert in_advance["known"] == [0, 1 + 1]
    assert in_advance["chosen"]


def test_a_known_choice_that_is_slow_here_is_not_taken(in_advance):
    assert in_advance["known, but slow here"][1] == 1 + 3 + 1


# manager: what it makes of a damaged cache. Counts: benchmarks, compile_misses, repaired.

DAMAGE = {
    "cold": (3, 3, 0),
    "nothing": (0, 0, 0),
    "winner truncated": (3, 0, 1),
    "winner empty": (3, 0, 1),
    "winner {}": (3, 0, 1),
    "winner a list": (3, 0, 1),
    "winner without timings": (3, 0, 1),
    "winner with an unknown field": (3, 0, 1),
    "winner not among the configurations": (3, 0, 1),
    "winner that never ran": (3, 0, 1),
    "winner with no number": (3, 0, 1),
    "winner gone": (3, 0, 0),
    "group truncated": (0, 1, 1),
    "group empty": (0, 1, 1),
    "group a list": (0, 1, 1),
    "group without its binary": (0, 1, 1),
    "group with an empty binary": (0, 1, 1),
    "group with truncated metadata": (0, 1, 1),
    "group gone": (0, 1, 0),
    "group with paths elsewhere": (0, 0, 0),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Reports of processes on damaged caches, under the stand-in driver."""
    return standing_in("damage.py", tmp_path_factory.mktemp("damage"))


@pytest.mark.parametrize("kind", DAMAGE)
def test_standin_damage_costs_at_most_what_is_lost_and_only_once(damaged, kind):
    first, second = damaged[kind]
    assert tuple(first[k] for k in ("benchmarks", "compile_misses", "repaired")) == DAMAGE[kind]
    if kind != "cold":
        assert (second["autotune_hits"], second["compile_hits"]) == (1, 1)
        assert (second["benchmarks"], second["compile_misses"], second["repaired"]) == (0, 0, 0)


def test_every_kind_of_damage_is_tried(damaged):
    assert damaged.keys() == DAMAGE.keys()


@pytest.mark.parametrize("error", ["EBUSY", "ENOENT", "ESTALE"])
def test_writing_survives_what_a_network_file_system_does(tmp_path, monkeypatch, error):
    import errno

    from veff.autotune import manager

    replace, failures = os.replace, iter([OSError(getattr(errno, error), error)])

    def fails_once(*paths):
        for failure in failures:
            raise failure
        replace(*paths)

    monkeypatch.setattr(os, "replace", fails_once)
    path = manager._write(tmp_path / "KEY", "file", b"data")
    assert Path(path).read_bytes() == b"data"
    assert len(list(tmp_path.glob("KEY/*"))) == 1
