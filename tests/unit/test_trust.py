"""What another user of the node can leave in the way of the cache, and what becomes of it.

Where the tests run as root, the other user is a real one: a child process with another uid.
"""

import contextlib
import io
import json
import logging
import os
import re
import shutil
import socket
import stat
import tarfile
import tempfile
import traceback
from pathlib import Path

import pytest

from veff.autotune import cache, fingerprint, gpus, node, seeds, trust
from veff.autotune.gpus import Gpu
from veff.errors import InputError

ME, OTHER = 60001, 60002  # uids that no account of the machine has
ROOT = os.geteuid() == 0
MARK, WORK = {"GPU": "NVIDIA H200"}, [{"batch_size": 4}]
H200 = Gpu("GPU-1", "NVIDIA H200", (9, 0), 16896)

as_root = pytest.mark.skipif(not ROOT, reason="needs root, to be two users")


def as_user(uid, action, *arguments):
    """What `action` returns, as text, in a process of that user; its messages stand before it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = io.StringIO()
        try:
            logging.basicConfig(
                stream=said, level=logging.WARNING, format="%(message)s", force=True
            )
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            said.write(str(action(*arguments)))
        except BaseException:
            said.write(traceback.format_exc())
        os.write(writer, said.getvalue().encode()[:60000])
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def place():
    """A folder that any user can reach, and that only its owner can write to."""
    with tempfile.TemporaryDirectory(prefix="trust-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def make(folder, members=None, **changed):
    """A seed in `folder`, as `seeds.pack` makes it but for what is changed in its manifest."""
    members = {"AAA/k.json": b"choice"} if members is None else members
    manifest = {
        "format": seeds.FORMAT,
        "fingerprint": MARK,
        "work": WORK,
        "triton": {},
        "files": {name: seeds.sha256(data) for name, data in members.items()},
    } | changed
    return archive(folder / "seed.tar", {"seed.json": json.dumps(manifest).encode(), **members})


def archive(path, members):
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            else:
                member.type, member.linkname = data
                tar.addfile(member)
    path.chmod(0o644)
    return path


# Seeds that are no seeds


def deep(folder):
    return archive(folder / "seed.tar", {"seed.json": b'{"format":' * 100_000})


def deep_list(folder):
    return archive(folder / "seed.tar", {"seed.json": b"[" * 500_000})


def long_manifest(folder):
    return archive(folder / "seed.tar", {"seed.json": b" " * (seeds.MANIFEST + 1)})


def fifo(folder):
    os.mkfifo(folder / "seed.tar", 0o600)
    return folder / "seed.tar"


def a_socket(folder):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "seed.tar"))
    return folder / "seed.tar"


def a_folder(folder):
    (folder / "seed.tar").mkdir()
    return folder / "seed.tar"


def link(folder):
    make(folder).rename(folder / "real")
    (folder / "seed.tar").symlink_to(folder / "real")
    return folder / "seed.tar"


def dangling(folder):
    (folder / "seed.tar").symlink_to(folder / "nowhere")
    return folder / "seed.tar"


def named(name):
    return lambda folder: make(folder, {name: b"x"})


def member(*type_and_target):
    """A listed file that is none: what it would give is what the manifest promises."""

    def build(folder):
        files = {"AAA/k.json": seeds.sha256(b"")}
        manifest = {"format": 1, "fingerprint": MARK, "work": WORK, "triton": {}, "files": files}
        members = {"seed.json": json.dumps(manifest).encode(), "AAA/k.json": type_and_target}
        return archive(folder / "seed.tar", members)

    return build


def sparse(folder):
    """A file of 1 TB that takes a kilobyte of the archive."""
    files = {"AAA/k.json": "0" * 64}
    manifest = {"format": 1, "fingerprint": MARK, "work": WORK, "triton": {}, "files": files}
    with tarfile.open(folder / "seed.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        head = json.dumps(manifest).encode()
        one = tarfile.TarInfo("seed.json")
        one.size = len(head)
        tar.addfile(one, io.BytesIO(head))
        hole = tarfile.TarInfo("AAA/k.json")
        hole.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.map": "0,0",
            "GNU.sparse.size": str(10**12),
        }
        tar.addfile(hole)
    return folder / "seed.tar"


def damaged(replace):
    def build(folder):
        path = make(folder)
        path.write_bytes(replace(path.read_bytes()))
        return path

    return build


def mode(bits):
    def build(folder):
        path = make(folder)
        path.chmod(bits)
        return path

    return build


SEEDS = {
    "deep JSON": deep,
    "a deep list": deep_list,
    "a manifest of 16 MB": long_manifest,
    "a FIFO": fifo,
    "a socket": a_socket,
    "a folder": a_folder,
    "a link": link,
    "a dangling link": dangling,
    "group-writable": mode(0o664),
    "writable by all": mode(0o646),
    "a later format": lambda folder: make(folder, format=seeds.FORMAT + 1),
    "a format in words": lambda folder: make(folder, format="new"),
    "no format": lambda folder: archive(folder / "seed.tar", {"seed.json": b"{}"}),
    "a list for a manifest": lambda folder: archive(folder / "seed.tar", {"seed.json": b"[1]"}),
    "null for a manifest": lambda folder: archive(folder / "seed.tar", {"seed.json": b"null"}),
    "no JSON": lambda folder: archive(folder / "seed.tar", {"seed.json": b"\xff\xfe{"}),
    "no manifest": lambda folder: archive(folder / "seed.tar", {"AAA/k.json": b"x"}),
    "no member": lambda folder: archive(folder / "seed.tar", {}),
    "a manifest that is a link": lambda folder: archive(
        folder / "seed.tar", {"seed.json": (tarfile.SYMTYPE, "/etc/hostname")}
    ),
    "files that are a list": lambda folder: make(folder, {}, files=[1, 2]),
    "files that are a number": lambda folder: make(folder, {}, files=5),
    "a missing file": lambda folder: make(folder, {}, files={"AAA/k.json": "0" * 64}),
    "../": named("../evil"),
    "AAA/..": named("AAA/.."),
    "AAA/../../evil": named("AAA/../../evil"),
    "/absolute": named("/tmp/evil"),
    "./": named("./evil"),
    "no folder": named("evil"),
    "three deep": named("AAA/BBB/evil"),
    "hidden": named("AAA/.evil"),
    "a newline in a folder": named("A\nA/evil"),
    "a symbolic link in it": member(tarfile.SYMTYPE, "/etc/hostname"),
    "a hard link in it": member(tarfile.LNKTYPE, "seed.json"),
    "a device in it": member(tarfile.CHRTYPE, ""),
    "a FIFO in it": member(tarfile.FIFOTYPE, ""),
    "a folder in it": member(tarfile.DIRTYPE, ""),
    "a hole of 1 TB": sparse,
    "empty": damaged(lambda data: b""),
    "cut in the manifest": damaged(lambda data: data[:520]),
    "cut in a file": damaged(lambda data: data[:2000]),
    "no tar": damaged(lambda data: b"x" * 9999),
    "one bit": damaged(lambda data: data.replace(b"choice", b"choicf")),
    "gzip": damaged(lambda data: b"\x1f\x8b" + data),
}


@pytest.mark.parametrize("kind", SEEDS)
def test_a_seed_that_cannot_be_trusted_is_passed_over_with_a_line_that_says_why(
    tmp_path, caplog, kind
):
    path = SEEDS[kind](tmp_path)
    assert seeds.find([tmp_path], MARK, WORK, logging.WARNING) is None
    (line,) = caplog.messages
    assert line.startswith(f"autotune: seed {path} is not used: ")
    assert "\n" not in line
    assert len(line) < len(str(path)) + 250


def test_the_seed_that_the_others_were_made_from_is_used(tmp_path):
    seed = seeds.find([make(tmp_path)], MARK, WORK, logging.WARNING)
    seed.unpack(tmp_path / "out")
    assert (tmp_path / "out/AAA/k.json").read_bytes() == b"choice"


def test_a_seed_that_cannot_be_trusted_means_a_benchmark_and_the_job_goes_on(
    tmp_path, caplog, monkeypatch
):
    (tmp_path / "run").mkdir()
    mode(0o664)(tmp_path / "run").rename(tmp_path / "run" / f"{seeds.name(MARK, WORK)}.tar")
    monkeypatch.setattr(fingerprint, "here", lambda gpu: MARK)

    def benchmark(folder, work):
        (folder / "AAA").mkdir()
        (folder / "AAA" / "k.json").write_bytes(b"my own choice")
        return {"entries": ["AAA"], "triton": {}}

    monkeypatch.setattr(cache.warm, "warm", benchmark)
    settings = {"cache_dir": str(tmp_path / "disk"), "seed": None, "strict": False}
    settings |= {"max_age_days": 30, "max_size_mb": 100}
    found = cache.find_or_fill(H200, settings, WORK, [tmp_path / "run"])
    assert found["node"] == "benchmarked"
    assert (found["folder"] / "triton/AAA/k.json").read_bytes() == b"my own choice"
    assert "its group can write to it" in caplog.text
    # The next node finds what this one chose, under the next name.
    settings["cache_dir"] = str(tmp_path / "another disk")
    again = cache.find_or_fill(H200, settings, WORK, [tmp_path / "run"])
    assert (again["node"], again["seed"]) == ("restored", found["seed"])


def test_a_seed_swapped_after_it_was_checked_is_not_what_is_unpacked(tmp_path):
    path = make(tmp_path)
    seed = seeds.Seed(path).check()
    (tmp_path / "new").mkdir()
    os.replace(make(tmp_path / "new", {"AAA/k.json": b"evil"}), path)
    seed.unpack(tmp_path / "out")
    seed.copy(tmp_path / "copy.tar")
    assert (tmp_path / "out/AAA/k.json").read_bytes() == b"choice"
    assert seeds.Seed(tmp_path / "copy.tar").id == seed.id


def test_publishing_does_not_write_through_a_link_that_was_put_there(tmp_path):
    seed = seeds.Seed(make(tmp_path))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"{seed.name}.tar").symlink_to(tmp_path / "mine")
    assert seeds.publish(seed, tmp_path / "run").path.name == f"{seed.name}.1.tar"
    assert (tmp_path / "mine").read_text() == "mine"


# Folders


def name_is_a_link(path):
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def name_is_a_dangling_link(path):
    path.symlink_to(path.parent / "nowhere")


def name_is_a_file(path):
    path.write_text("")


def name_is_a_fifo(path):
    os.mkfifo(path)


def name_is_a_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def name_is_open_to_all(path):
    path.mkdir()
    path.chmod(0o777)


def name_is_open_to_all_but_sticky(path):
    path.mkdir()
    path.chmod(0o1777)


def name_is_open_to_the_group(path):
    path.mkdir()
    path.chmod(0o770)


NAMES = [
    name_is_a_link,
    name_is_a_dangling_link,
    name_is_a_file,
    name_is_a_fifo,
    name_is_a_socket,
    name_is_open_to_all,
    name_is_open_to_all_but_sticky,
    name_is_open_to_the_group,
]


@pytest.mark.parametrize("build", NAMES, ids=lambda build: build.__name__)
@pytest.mark.parametrize("name", ["veff-autotune", "veff-gpus"])
def test_a_name_that_is_taken_is_stepped_around_with_one_warning(place, caplog, build, name):
    build(place / name)
    assert node.private(place, name) == place / f"{name}.1"
    assert len(caplog.messages) == 1
    assert f"{place / name} is stepped around" in caplog.text
    assert stat.S_IMODE((place / f"{name}.1").stat().st_mode) == 0o700
    assert node.private(place, name) == place / f"{name}.1"  # the next job meets the first


def test_where_all_names_are_taken_there_is_none(place):
    for number in range(node.NAMES):
        (place / (f"name.{number}" if number else "name")).touch()
    with pytest.raises(trust.Untrusted, match="names like"):
        node.private(place, "name")


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o757, 0o2775, 0o770])
@pytest.mark.parametrize("above", [0, 1, 3])
def test_a_place_that_others_can_write_to_is_not_used(place, caplog, monkeypatch, bits, above):
    monkeypatch.setattr(node, "_usual", lambda: [place / "usual"])
    (place / "usual").mkdir()
    folders = [place / "a", place / "a/b", place / "a/b/c", place / "a/b/c/d"]
    folders[-1].mkdir(parents=True)
    folders[-1 - above].chmod(bits)
    assert node.root(str(folders[-1])).parent == place / "usual"
    assert f"can write to {folders[-1 - above]} (mode {bits:o})" in caplog.text


@pytest.mark.parametrize("bits", [0o1777, 0o3777, 0o755, 0o700, 0o711, 0o2755])
def test_a_place_where_nobody_can_rename_what_is_mine_is_used(place, caplog, bits):
    (place / "a").mkdir()
    (place / "a").chmod(bits)
    assert node.root(str(place / "a")).parent == place / "a"
    assert caplog.messages == []


@pytest.mark.parametrize("through", ["absolute", "relative", "twice", "up"])
def test_a_link_on_the_way_is_followed_to_a_place_that_is_checked(place, through):
    (place / "real/disk").mkdir(parents=True)
    target = {"relative": "real", "up": f"../{place.name}/real"}.get(through, place / "real")
    (place / "link").symlink_to(target)
    if through == "twice":
        (place / "link2").symlink_to("link")
    way = place / ("link2" if through == "twice" else "link") / "disk"
    assert node.private(way, "cache") == place / "real/disk/cache"
    (place / "real").chmod(0o777)
    with pytest.raises(trust.Untrusted, match=r"everybody can write to .*real"):
        node.private(way, "cache")


def test_links_in_a_circle_end(place):
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        node.private(place / "a", "cache")


@pytest.mark.parametrize("what", ["file", "under a file"])
def test_a_cache_dir_that_is_a_file_is_told_in_one_line(place, what):
    (place / "file").touch()
    with pytest.raises(InputError, match=r"cache_dir .* is not a folder") as error:
        node.root(str(place / "file" if what == "file" else place / "file/below"))
    assert "\n" not in str(error.value)


def test_places_of_this_user_or_job_alone_come_first(place, monkeypatch):
    for name in ("XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR"):
        (place / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(place / name))
    for name in ("XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR"):
        assert node.root(None).parent == place / name
        shutil.rmtree(place / name)


def test_a_full_private_place_is_passed_over(place, monkeypatch):
    for name in ("XDG_RUNTIME_DIR", "SLURM_TMPDIR"):
        (place / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(place / name))
    room = node._room
    monkeypatch.setattr(node, "_room", lambda path: path.name[0] != "X" and room(path))
    assert node.root(None).parent == place / "SLURM_TMPDIR"


def test_in_a_container_that_hides_root_the_folders_of_root_are_still_roots(place, monkeypatch):
    status = list(os.stat("/"))
    status[4] = 65534
    monkeypatch.setattr(trust, "_hidden_root", lambda: 65534)
    trust._check_folder(os.stat_result(status), "/")
    monkeypatch.setattr(trust, "_hidden_root", lambda: 0)
    with pytest.raises(trust.Untrusted, match="65534"):
        trust._check_folder(os.stat_result(status), "/")


# Two real users


@pytest.fixture
def homes(place):
    """A folder of each of two users, open for the other to look into, and one like /tmp."""
    for name, uid in (("mine", ME), ("theirs", OTHER)):
        (place / name).mkdir()
        os.chown(place / name, uid, uid)
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    return place


@as_root
@pytest.mark.parametrize("folder_mode", [0o777, 0o1777, 0o755])
def test_a_seed_of_another_user_is_not_used(homes, folder_mode):
    (homes / "shared").mkdir()
    path = make(homes / "shared")
    os.chown(path, OTHER, OTHER)
    (homes / "shared").chmod(folder_mode)
    said = as_user(ME, seeds.find, [homes / "shared"], MARK, WORK, logging.WARNING)
    assert said == (
        f"autotune: seed {path} is not used: it belongs to uid {OTHER}, not to this user or "
        "root\nNone"
    )


@as_root
@pytest.mark.parametrize("owner", [0, ME])
def test_a_seed_of_root_or_mine_is_used(homes, owner):
    path = make(homes)
    os.chown(path, owner, owner)
    assert "Seed object" in as_user(ME, seeds.find, [path], MARK, WORK, logging.WARNING)


@as_root
def test_a_seed_that_another_user_put_where_mine_goes_is_stepped_around(homes):
    seed = make(homes)
    run = homes / "run"
    run.mkdir()
    run.chmod(0o1777)
    theirs = as_user(OTHER, lambda: seeds.publish(seeds.Seed(seed), run).path)
    mine = as_user(ME, lambda: seeds.publish(seeds.Seed(seed), run).path.name)
    assert Path(theirs).stat().st_uid == OTHER
    warning, name = mine.splitlines()
    assert warning.startswith(f"autotune: seed {theirs} is stepped around: it belongs to uid")
    assert name == f"{Path(theirs).stem}.1.tar"
    assert (run / name).stat().st_uid == ME
    again = as_user(ME, lambda: seeds.find([run], MARK, WORK, logging.DEBUG).path.name)
    assert again == name


@as_root
@pytest.mark.parametrize("bits", [0o700, 0o755, 0o777])
@pytest.mark.parametrize("name", ["veff-autotune-60001", "veff-gpus-60001"])
def test_a_folder_that_another_user_made_beforehand_is_stepped_around(homes, bits, name):
    theirs = homes / "tmp" / name
    as_user(OTHER, lambda: (theirs.mkdir(), theirs.chmod(bits)))
    warning, mine = as_user(ME, node.private, homes / "tmp", name).splitlines()
    assert warning == (f"autotune: {theirs} is stepped around: it belongs to uid {OTHER}")
    assert mine == f"{theirs}.1"
    assert Path(mine).stat().st_uid == ME
    assert stat.S_IMODE(Path(mine).stat().st_mode) == 0o700


@as_root
def test_a_link_of_another_user_is_stepped_around_and_not_followed(homes):
    as_user(OTHER, lambda: (homes / "tmp/cache").symlink_to(homes / "mine"))
    _, mine = as_user(ME, node.private, homes / "tmp", "cache").splitlines()
    assert mine == str(homes / "tmp/cache.1")
    assert list((homes / "mine").iterdir()) == []


@as_root
def test_a_cache_dir_below_a_folder_of_another_user_is_not_used(homes):
    (homes / "theirs/mine").mkdir()
    os.chown(homes / "theirs/mine", ME, ME)
    for name in ("XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR"):
        os.environ.pop(name, None)
    said = as_user(ME, node.root, str(homes / "theirs/mine"))
    warning, *_, folder = said.splitlines()
    assert f"{homes / 'theirs'} belongs to uid {OTHER}" in warning
    assert Path(folder).parent == Path("/tmp")
    shutil.rmtree(folder)


@as_root
def test_a_link_of_another_user_on_the_way_to_a_cache_dir_is_not_followed(homes):
    as_user(OTHER, lambda: (homes / "tmp/disk").symlink_to(homes / "mine"))
    said = as_user(ME, node.private, homes / "tmp/disk", "cache")
    assert f"the link {homes / 'tmp/disk'} belongs to uid {OTHER}" in said
    assert list((homes / "mine").iterdir()) == []


@as_root
def test_a_folder_of_another_user_with_the_sticky_bit_is_not_used(homes):
    (homes / "theirs").chmod(0o1777)  # its owner can still rename what is in it
    assert f"belongs to uid {OTHER}" in as_user(ME, node.private, homes / "theirs", "cache")


@as_root
def test_the_lock_of_a_gpu_is_taken_whatever_another_user_put_in_the_way(homes, monkeypatch):
    two = [H200, H200._replace(uuid="GPU-2")]
    names = f"veff-gpus-{ME}"
    folders = [Path("/tmp", names), Path("/tmp", f"{names}.1")]
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        as_user(OTHER, folders[0].mkdir)
        said = as_user(ME, gpus._lock_one, two)
        assert "stepped around" in said
        assert "GPU-1" in said
        assert (folders[1] / "GPU-1.lock").stat().st_uid == ME


def test_without_a_place_for_locks_the_first_gpu_is_taken(monkeypatch, caplog):
    def no(*_):
        raise trust.Untrusted("everybody can write to /tmp (mode 777)")

    monkeypatch.setattr(node, "private", no)
    assert gpus._lock_one([H200]) == H200
    assert "no GPU is locked" in caplog.text


def test_every_test_that_the_page_names_is_there():
    tests, file, n = Path(__file__).parents[1], "", 0
    for line in (tests.parent / "docs/trust.md").read_text().splitlines():
        for where, name in re.findall(r"`(…|[\w/]+\.py)::(\w+)`", line):
            file = file if where == "…" else where
            path = tests.parent / file if "/" in file else tests / "unit" / file
            assert f"def {name}(" in path.read_text(), f"{file}::{name}"
            n += 1
    assert n > 30
