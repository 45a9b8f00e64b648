"""A new user's hour: what one types, what the screen shows, and how long it takes.

    python tests/bench/first_hour.py FOLDER     # makes a clone of this repository in it

On a CPU, with the demo's genome and models as one's own. Prints a transcript and writes
results/first_hour.json: for each step its command, its seconds, its lines of screen and its exit
status.
"""

import argparse
import datetime
import gzip
import json
import os
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULT = HERE / "results/first_hour.json"
HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
SHEET = "experiment\tcheckpoint\n"
OWN = (
    "snakemake --cores all --config variants=my.vcf reference=genome.fa models=my_models.tsv "
    "outdir=results/mine top='{n: 1, shuffles: 5}'"
)
STEPS = {
    "environment": "make env",
    "demo": "make demo",
    "plan": f"{OWN} -n",
    "own": OWN,
    "two models": OWN.replace("my_models", "two_models").replace("mine", "two"),
    "typo": OWN.replace("variants", "varaints"),
    "wrong form": OWN.replace("top='{n: 1, shuffles: 5}'", "top=1"),
    "wrong reference": OWN.replace("genome.fa", "other.fa").replace("mine", "other"),
    "again": OWN,
    "model added": f"printf 'cellB\\t{{}}/cellB.fold0.torch\\n' >> my_models.tsv\n{OWN}",
    "variants alone": OWN.replace("mine", "checked") + " --until prepare",
}


def prepare(clone: Path) -> None:
    """A user's files: 12 variants, the genome, another one, and two model sheets."""
    with gzip.open(clone / "resources/demo/genome.fa.gz", "rt") as handle:
        genome = handle.read()
    (clone / "genome.fa").write_text(genome)
    turned = str.maketrans("ACGT", "CGTA")
    names = (line if line.startswith(">") else line.translate(turned) for line in genome.split())
    (clone / "other.fa").write_text("\n".join(names) + "\n")
    with gzip.open(clone / "resources/demo/variants.vcf.gz", "rt") as handle:
        rows = [line.split("\t")[:7] for line in handle if not line.startswith("#")]
    plain = [row for row in rows if set(row[4]) <= set("ACGT")][::25]
    (clone / "my.vcf").write_text(HEAD + "".join("\t".join([*row, ".\n"]) for row in plain))
    models = [f"{name}\tresources/demo/models/{name}.fold0.torch\n" for name in ("cellA", "cellB")]
    (clone / "my_models.tsv").write_text(SHEET + models[0])
    (clone / "two_models.tsv").write_text(SHEET + "".join(models))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    clone = parser.parse_args().folder / "cherimoya-veff"
    if not clone.is_dir():
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    prepare(clone)
    environment = os.environ | {"PATH": f"{clone}/.venv/bin:{os.environ['PATH']}"}
    found = {}
    earlier = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    for step, command in STEPS.items():
        if step == "environment" and (clone / ".venv").is_dir():
            found[step] = earlier.get(step)  # of a run that made it
            continue
        command = command.replace("{}", "resources/demo/models")
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seconds = time.monotonic() - began
        print(f"$ {command}\n{done.stdout}({seconds:.0f} s)\n", flush=True)
        found[step] = {
            "command": command,
            "seconds": round(seconds, 1),
            "lines": len(done.stdout.splitlines()),
            "status": done.returncode,
        }
    RESULT.write_text(
        json.dumps({"date": str(datetime.date.today()), "cores": os.cpu_count()} | found, indent=1)
        + "\n"
    )


if __name__ == "__main__":
    main()
