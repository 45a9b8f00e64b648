"""How long the reference and the alleles take to prepare, and how much memory.

    python tests/bench/prepare.py [--bases 300000000] [--alleles 100000 1000000] [--indels 1000000]

Simulates a genome and, for each number, a sites-only bgzipped VCF of SNVs in the order of the
genome, and one of indels; prepares all on one core, each in a process of its own; writes
results/prepare.json.
"""

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pysam

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "workflow"))

from veff.inputs import preparing, reference  # noqa: E402

CONTIG = 60_000_000
LINE = 60


def simulate_genome(fasta: Path, n_bases: int) -> None:
    rng = np.random.default_rng(0)
    with fasta.open("wb") as out:
        for i, begin in enumerate(range(0, n_bases, CONTIG), 1):
            lines = min(CONTIG, n_bases - begin) // LINE
            bases = np.full((lines, LINE + 1), ord("\n"), np.uint8)
            bases[:, :LINE] = np.frombuffer(b"ACGT", np.uint8)[
                rng.integers(0, 4, (lines, LINE), np.uint8)
            ]
            out.write(b">chr%d\n" % i)
            out.write(bases.tobytes())


def simulate_snvs(vcf: Path, genome: reference.Reference, n_alleles: int) -> None:
    rng = np.random.default_rng(1)
    sites = np.sort(rng.integers(0, len(genome.bases), n_alleles))
    contigs = np.searchsorted(genome.offsets, sites, "right") - 1
    refs = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), genome.bases[sites])
    alts = (refs + rng.integers(1, 4, n_alleles)) % 4
    with pysam.BGZFile(str(vcf), "w") as out:
        out.write(b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        for begin in range(0, n_alleles, 100_000):
            here = slice(begin, begin + 100_000)
            positions = sites[here] - genome.offsets[contigs[here]] + 1
            rows = zip(contigs[here] + 1, positions, refs[here], alts[here], strict=True)
            lines = [
                f"chr{contig}\t{pos}\trs{pos}\t{'ACGT'[ref]}\t{'ACGT'[alt]}\t.\tPASS\tAF=0.01\n"
                for contig, pos, ref, alt in rows
            ]
            out.write("".join(lines).encode())


def simulate_indels(vcf: Path, genome: reference.Reference, n_alleles: int) -> None:
    """Deletions and insertions of up to 20 bases; a tenth of these repeat what is there."""
    rng = random.Random(2)
    sites = sorted(rng.sample(range(1, len(genome.bases) - 50), n_alleles))
    contigs = (np.searchsorted(genome.offsets, sites, "right") - 1).tolist()
    with pysam.BGZFile(str(vcf), "w") as out:
        out.write(b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        for site, contig in zip(sites, contigs, strict=True):
            pos = site - int(genome.offsets[contig])
            length = min(1 + int(rng.expovariate(0.3)), 20)
            ref = genome.fetch(contig, pos, pos + 1 + length).decode()
            new = "".join(rng.choices("ACGT", k=length)) if rng.random() < 0.9 else ref[1:]
            pair = (ref, ref[0]) if rng.random() < 0.5 else (ref[0], ref[0] + new)
            row = "chr{}\t{}\t.\t{}\t{}\t.\tPASS\tAF=0.01\n"
            out.write(row.format(contig + 1, pos + 1, *pair).encode())


def peak_rss_mb() -> int:
    """Of this process; unlike getrusage's it does not start from the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def measure(step: str, source: Path, folder: Path) -> dict:
    """Do one step in this process, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    genome = None if step == "build" else reference.Reference.open(folder)
    begin, cpu = time.perf_counter(), time.process_time()
    if genome is None:
        reference.build(source, folder)
        done = {"bases": int((folder / "bases.u8").stat().st_size)}
    else:
        outputs = folder / "alleles.parquet", folder / "scoreable.parquet"
        summary = preparing.prepare(source, genome, *outputs, chunk_size=8192)
        done = {"alleles": summary["alleles"], "scoreable": summary["scoreable"]}
    return done | {
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_rss_mb": peak_rss_mb(),
    }


def in_own_process(*step) -> dict:
    command = [sys.executable, __file__, "--measure", *map(str, step)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bases", type=int, default=300_000_000)
    parser.add_argument("--alleles", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--indels", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        step, source, folder = arguments.measure
        print(json.dumps(measure(step, Path(source), Path(folder))))
        return
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores_of_machine": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }
    with tempfile.TemporaryDirectory() as scratch:
        fasta, folder = Path(scratch) / "genome.fa", Path(scratch) / "reference"
        simulate_genome(fasta, arguments.bases)
        results["reference"] = in_own_process("build", fasta, folder)
        fasta.unlink()
        genome = reference.Reference.open(folder)
        results["prepare"] = []
        for n_alleles in arguments.alleles:
            vcf = Path(scratch) / "variants.vcf.gz"
            simulate_snvs(vcf, genome, n_alleles)
            results["prepare"].append(in_own_process("prepare", vcf, folder))
        simulate_indels(vcf, genome, arguments.indels)
        results["indels"] = in_own_process("prepare", vcf, folder)
    text = json.dumps(results, indent=1)
    (HERE / "results" / "prepare.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
