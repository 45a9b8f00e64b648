"""How long the haplotypes of a panel take to plan, and how much memory.

    python tests/bench/haplotypes.py [--samples 2504] [--records 25000]

Simulates a genome and a phased panel on it, whose chromosomes are mosaics of 512 ancestors', of
which a clade has each allele, with 30 bp from a record to the next and one indel in ten; prepares
it; plans it in a process of its own; writes results/haplotypes.json.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pysam

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "workflow"))

from veff.haplotypes import planning  # noqa: E402
from veff.inputs import preparing, reference  # noqa: E402

SPACING = 30  # bp
ANCESTORS = 512


def simulate(folder: Path, n_samples: int, n_records: int) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    bases = rng.choice(np.frombuffer(b"ACGT", np.uint8), n_records * SPACING + 10_000)
    fasta, vcf = folder / "genome.fa", folder / "panel.vcf.gz"
    fasta.write_bytes(b">chr1\n" + bases.tobytes() + b"\n")
    sites = 5000 + np.sort(rng.choice(n_records * SPACING, n_records, replace=False))
    ancestor = rng.integers(0, ANCESTORS, 2 * n_samples)
    names = "\t".join(f"s{i}" for i in range(n_samples))
    with pysam.BGZFile(str(vcf), "w") as out:
        out.write(b"##fileformat=VCFv4.2\n")
        head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
        out.write(f"{head}\t{names}\n".encode())
        for site in sites.tolist():
            changed = rng.random(2 * n_samples) < 0.001  # recombination
            ancestor[changed] = rng.integers(0, ANCESTORS, changed.sum())
            clade = 2 ** min(rng.geometric(0.3) - 1, 8)
            carried = np.arange(ANCESTORS) // clade == rng.integers(ANCESTORS // clade)
            gt = carried[ancestor].astype(np.uint8).reshape(-1, 2)
            text = np.array([b"0|0", b"0|1", b"1|0", b"1|1"])[2 * gt[:, 0] + gt[:, 1]]
            ref = bases[site : site + 1].tobytes().decode()
            alt = "ACGT"[("ACGT".index(ref) + rng.integers(1, 4)) % 4]
            if rng.random() < 0.1:
                alt = ref + "".join(rng.choice(list("ACGT"), rng.integers(1, 6)))
                if rng.random() < 0.5:
                    ref, alt = bases[site : site + len(alt)].tobytes().decode(), ref
            row = f"chr1\t{site + 1}\t.\t{ref}\t{alt}\t.\tPASS\t.\tGT\t".encode()
            out.write(row + b"\t".join(text.tolist()) + b"\n")
    return fasta, vcf


def measure(folder: Path) -> None:
    """Plan what is prepared in this folder."""
    out = (folder / name for name in ("virtual", "haplotypes", "sampled", "phasing"))
    began, used = time.monotonic(), time.process_time()
    summary = planning.plan(
        folder / "panel.vcf.gz",
        folder / "alleles",
        folder / "scoreable",
        reference.Reference.open(folder / "reference"),
        samples="all",
        max_haplotypes=64,
        span=500,
        input_length=2114,
        chunk_size=100_000,
        out=planning.Out(*out),
    )
    seconds = {
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
    }
    (folder / "measured.json").write_text(json.dumps(summary | seconds))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=2504)
    parser.add_argument("--records", type=int, default=25_000)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "results/haplotypes.json")
    args = parser.parse_args()
    if args.measure:
        return measure(args.measure)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        fasta, vcf = simulate(folder, args.samples, args.records)
        reference.build(fasta, folder / "reference")
        genome = reference.Reference.open(folder / "reference")
        preparing.prepare(vcf, genome, folder / "alleles", folder / "scoreable", chunk_size=10**6)
        command = [sys.executable, __file__, "--measure", str(folder)]
        child = subprocess.Popen(command)
        _, status, used = os.wait4(child.pid, 0)
        assert status == 0
        record = {
            "date": datetime.date.today().isoformat(),
            "cpu": platform.processor() or platform.machine(),
            "samples": args.samples,
            "records": args.records,
            "max_rss_gb": round(used.ru_maxrss / 1e6, 2),
            "plan": json.loads((folder / "measured.json").read_text()),
        }
    args.out.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
