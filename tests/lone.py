"""An environment that has Snakemake and what it asks for, and nothing else: no NumPy, no veff."""

import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(name: str) -> set[str]:
    """A distribution and all that it asks for, as far as they are installed here."""
    found, todo = set(), [name]
    while todo:
        one = canonicalize_name(todo.pop())
        if one not in found:
            found.add(one)
            asked = map(Requirement, metadata.requires(one) or ())
            todo += [r.name for r in asked if not r.marker or r.marker.evaluate({"extra": ""})]
    return found


def make(folder: Path) -> Path:
    """The Python of such an environment, made in `folder` of links into the running one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    here = Path(sysconfig.get_path("purelib"))
    for name in closure("snakemake"):
        tops = {file.parts[0] for file in metadata.files(name)} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).is_symlink():
                (site / top).symlink_to(here / top)
    return folder / "bin/python"
