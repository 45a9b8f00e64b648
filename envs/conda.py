"""Writes cpu.yaml and gpu.yaml, and what follows them, from the pinned lists beside it.

Usage: conda.py. A conda file cannot say --no-deps, and pip would otherwise bring all that
Cherimoya's training needs: so these two packages are installed by the post-deployment script,
which Snakemake runs after it has made the environment.
"""

from pathlib import Path

HERE = Path(__file__).parent
WITHOUT_DEPENDENCIES = ("cherimoya", "tangermeme")


def lines(name: str) -> list[str]:
    """The pins and options of a list, without its comments."""
    text = (HERE / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def files() -> dict[str, str]:
    """The content of each conda file by its name."""
    pins = lines("requirements.txt")
    last = [pin for pin in pins if pin.split("==")[0] in WITHOUT_DEPENDENCIES]
    found = {}
    for kind in ("cpu", "gpu"):
        first = lines(f"torch-{kind}.txt") + [pin for pin in pins if pin not in last]
        found[f"{kind}.yaml"] = (
            f"# Written by conda.py from torch-{kind}.txt and requirements.txt.\n"
            "channels:\n  - conda-forge\n  - nodefaults\n"
            "dependencies:\n  - python =3.12\n  - pip\n  - pip:\n"
            + "".join(f"      - {pin!r}\n" if ";" in pin else f"      - {pin}\n" for pin in first)
        )
        found[f"{kind}.post-deploy.sh"] = (
            "# Written by conda.py. The last is the library, of rules that are not in a clone.\n"
            f'python -m pip install --no-deps {" ".join(last)} ${{VEFF_HOME:+"$VEFF_HOME"}}\n'
        )
    return found


if __name__ == "__main__":
    for name, content in files().items():
        (HERE / name).write_text(content)
