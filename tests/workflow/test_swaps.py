"""What a run does when the files that it was given become others, and with a folder in use."""

import fcntl
import os
import re
import shutil
import time

import pysam
import pytest

from project import DEMO, Project

# An input, another content of the same size, and the rules that make what depends on it.
SWAPS = {
    "small.vcf": (b"sim0008", b"sim0088", {"prepare", "annotate", "collect"}, {"inspect"}),
    "genome.fa": (b"A", b"C", {"reference", "prepare", "collect"}, {"inspect"}),
    "cellA.torch": (b"PK", b"KP", {"inspect", "resolve", "score", "collect"}, {"prepare"}),
    "regions.bed": (b"9", b"8", {"null", "collect"}, {"score", "prepare", "inspect"}),
    "peaks.bed": (b"9", b"8", {"null", "nearby", "collect"}, {"score", "prepare", "inspect"}),
    "genes.bed": (b"one", b"two", {"nearby", "collect"}, {"score", "prepare", "null"}),
    "aliases.tsv": (b"chrA", b"chrZ", {"prepare", "nearby"}, {"reference", "inspect"}),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run on files that are the test's own."""
    project = Project(tmp_path_factory.mktemp("swaps"))
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        header, rows = str(vcf.header), [str(record) for record in vcf][5:9]
    project.write("small.vcf", header + "".join(rows))
    with pysam.FastxFile(str(DEMO / "genome.fa.gz")) as fasta:
        project.write("genome.fa", "".join(f">{one.name}\n{one.sequence}\n" for one in fasta))
    shutil.copy(DEMO / "models/cellA.fold0.torch", project.folder / "cellA.torch")
    project.write("models.tsv", "experiment\tcheckpoint\tpeaks\ncellA\tcellA.torch\tpeaks.bed\n")
    project.write("regions.bed", "simA\t2000\t90000\n")
    project.write("peaks.bed", "simA\t2000\t9000\n")
    project.write("genes.bed", "simA\t2000\t9000\tone\n")
    project.write("aliases.tsv", "simA\tchrA\n")
    project.files = {
        "variants": "small.vcf",
        "reference": "genome.fa",
        "models": "models.tsv",
        "contig_aliases": "aliases.tsv",
        "annotations": "{genes: genes.bed}",
        "nulls": "{n: 20, regions: regions.bed}",
        "top": "{n: 0}",
        "batch_size": 8,
    }
    project.run(**project.files)
    # Snakemake's records of that run are not in this one's folder.
    project.elsewhere = Project(tmp_path_factory.mktemp("elsewhere"))
    for path in [project.folder / "models.tsv", *map(project.folder.joinpath, SWAPS)]:
        project.elsewhere.folder.joinpath(path.name).symlink_to(path)
    project.elsewhere.files = project.files | {"outdir": project.outdir}
    return project


def planned(project):
    said = project.run("-n", **project.files)
    return {line.split()[0] for line in said.splitlines() if line.split()[1:] == ["1"]}


@pytest.mark.parametrize("name", SWAPS)
def test_another_content_with_an_old_time_makes_again_just_what_depends_on_it(own, name):
    """From another folder, too, than the one in which the run was."""
    old, new, again, not_again = SWAPS[name]
    path = own.folder / name
    kept = path.with_suffix(".kept")
    os.rename(path, kept)
    content = kept.read_bytes()
    path.write_bytes(content.replace(old, new, 1))
    assert content != path.read_bytes()
    os.utime(path, ns=(10**18, 10**18))
    try:
        rules = planned(own.elsewhere)
    finally:
        os.replace(kept, path)
    assert again <= rules
    assert not not_again & rules


def test_the_same_content_with_a_new_time_makes_nothing_again_from_any_folder(own):
    for name in ("models.tsv", *SWAPS):
        os.utime(own.folder / name)
    assert planned(own) == planned(own.elsewhere) == set()


def test_a_second_run_on_the_folder_ends_in_one_line_and_a_dry_run_does_not(own):
    with (own.outdir / ".veff/run.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        said = own.run(**own.files, fails=True)
        assert planned(own) == set()
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert "outdir out: another run writes there, process" in line
    assert "Traceback" not in said


def test_a_folder_of_the_users_is_left_as_it_is(own):
    folder = own.folder / "mine"
    (folder / "top").mkdir(parents=True)
    (folder / "top/mine.txt").write_text("mine")
    said = own.run(**own.files, outdir="mine", fails=True)
    assert "no run of ours wrote this folder, and top would be written over" in said
    assert [path.name for path in folder.rglob("*")] == ["top", "mine.txt"]


def test_a_damaged_part_is_made_again_and_a_file_swapped_meanwhile_stops_its_reader(own):
    """From another folder than the one in which the run was."""
    project = own.elsewhere
    (part,) = own.outdir.glob("parts/answers/*.parquet")
    whole = part.read_bytes()
    part.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    (own.outdir / "summary.parquet").unlink()
    said = project.run(**project.files, fails=True)
    assert f"error: {part}: not as the job wrote it, so damaged since; removed, and the" in said
    assert not part.exists()

    vcf = own.folder / "small.vcf"
    text, times = vcf.read_text(), vcf.stat()
    process = project.start("--keep-going", **project.files)
    while not part.exists():
        assert process.poll() is None
        time.sleep(0.1)
    vcf.write_text(text.replace("sim0008", "sim0088", 1))
    os.utime(vcf, ns=(times.st_atime_ns, times.st_mtime_ns))
    said, _ = process.communicate()
    assert process.returncode
    assert re.search(r"error: small\.vcf: record \d is not the one that was prepared", said)
    assert "Traceback" not in said
    assert part.read_bytes() == whole
    assert (own.outdir / "summary.parquet").exists()
    vcf.write_text(text)
    assert planned(project) == {"all", "annotate"}
