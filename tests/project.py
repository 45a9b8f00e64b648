"""Runs the real Snakefile through Snakemake."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "resources/demo"
# Real and nasty files, which are not part of the project.
SHARED = Path(os.environ.get("VEFF_SHARED_DATA", ROOT.parent / "shared/data"))


class Project:
    """A folder in which the workflow is run, as a user of the clone would."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("config", "resources"):
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(ROOT / name)
        self.outdir = folder / "out"

    def command(self, *arguments: str, **config) -> list[str]:
        config = {
            "variants": DEMO / "variants.vcf.gz",
            "reference": DEMO / "genome.fa.gz",
            "models": DEMO / "models.tsv",
            "outdir": "out",
            "device": "cpu",
        } | config
        return [
            sys.executable,
            *("-m", "snakemake", "--snakefile", str(ROOT / "workflow/Snakefile")),
            *("--workflow-profile", "none"),  # all that Snakemake says
            *("--configfile", "config/demo.yaml"),
            *("--cores", "2", "--rerun-incomplete", *arguments),
            *("--config", *(f"{key}={value}" for key, value in config.items())),
        ]

    def start(self, *arguments: str, **config) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(*arguments, **config),
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, fails: bool = False, **config) -> str:
        """What a run prints. Raises `AssertionError` if it does not end as it should."""
        process = self.start(*arguments, **config)
        output, _ = process.communicate()
        assert bool(process.returncode) == fails, output
        return output

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


def environment() -> dict[str, str]:
    """This environment, with the running Python first, since rule scripts take `python`, with
    the library, as `make env` has it, and with `site`, which starts Python in less time."""
    first = {
        "PATH": [Path(sys.executable).parent],
        "PYTHONPATH": [ROOT / "tests/site", ROOT / "workflow"],
    }
    return os.environ | {
        name: os.pathsep.join(filter(None, [*map(str, paths), os.environ.get(name)]))
        for name, paths in first.items()
    }


def printed(code: str) -> str:
    """What a fresh Python with the library prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
