"""How long alleles take to scan for motifs, on how many cores.

    python tests/bench/motifs.py [--alleles 100000] [--motifs 2000] [--threads 2]

The motifs are JASPAR 2026's core vertebrates, repeated until there are as many as are asked for,
in the families of the first round. The alleles are SNVs, and one in ten an insertion or deletion,
in a random genome. Null and hits are made as the workflow makes them; results/motifs.json has the
seconds, and those of all cores together (cpu_s), which say more on a machine that is busy.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "workflow"))

from veff.inputs import reference  # noqa: E402
from veff.motifs import hits, motifset  # noqa: E402

BASES = 10_000_000


def alleles(n: int, genome: reference.Reference) -> pa.Table:
    rng = np.random.default_rng(1)
    start = np.sort(rng.integers(1_000, BASES - 1_000, n))
    letters = np.array(list("ACGT"))
    alt = letters[rng.integers(0, 4, n)]
    same = genome.bases[start] == [ord(one) for one in alt]
    alt[same] = np.where(alt[same] == "A", "C", "A")
    indel = rng.random(n) < 0.1
    ref_len = np.where(indel, rng.integers(0, 10, n), 1).astype(np.int32)
    alt = [
        "ACGTACGTAC"[: int(k)] if i else one
        for one, i, k in zip(alt, indel, rng.integers(0, 10, n), strict=True)
    ]
    table = {"allele_id": np.arange(n), "contig": np.zeros(n, np.int32), "start": start}
    return pa.table(table | {"ref_len": ref_len, "alt": alt})


def repeated(motifs: motifset.MotifSet, n: int) -> motifset.MotifSet:
    def again(items: list) -> list:
        return (items * (n // len(items) + 1))[:n]

    names = [f"{name} {i}" for i, name in enumerate(again(motifs.names))]
    return motifset.MotifSet(names, again(motifs.matrices), again(motifs.families))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alleles", type=int, default=100_000)
    parser.add_argument("--motifs", type=int, default=2_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    numba.set_num_threads(arguments.threads)
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores_of_machine": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        **vars(arguments),
    }
    with tempfile.TemporaryDirectory() as scratch:
        fasta = Path(scratch) / "genome.fa"
        bases = np.frombuffer(b"ACGT", np.uint8)[np.random.default_rng(0).integers(0, 4, BASES)]
        fasta.write_bytes(b">chr1\n" + bases.tobytes() + b"\n")
        reference.build(fasta, Path(scratch) / "reference")
        genome = reference.Reference.open(Path(scratch) / "reference")
        table = alleles(arguments.alleles, genome)
        jaspar = motifset.read(motifset.JASPAR)
        began = [time.perf_counter()]
        finder = hits.Finder(repeated(jaspar, arguments.motifs), genome)
        began.append(time.perf_counter())
        nulls = finder.nulls(table, seed=0, scheme="uniform", regions=None)
        began.append(time.perf_counter())
        rows = sum(len(part) for part in finder.hits(table, nulls))
        began.append(time.perf_counter())
    cpu = time.process_time()
    seconds = np.diff(began).round(1).tolist()
    results |= dict(zip(("p_value_tables_s", "nulls_s", "alleles_s"), seconds, strict=True))
    results |= {
        "rows": rows,
        "classes": len(nulls),
        "cpu_s": round(cpu, 1),
        "mean_width": round(float(np.mean([m.shape[1] for m in jaspar.matrices])), 1),
    }
    (HERE / "results" / "motifs.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
