"""Pairs of SNVs on the demo's genome that do together what their sum does not say.

    python resources/demo/pairs.py

It writes pairs.vcf.gz and pairs.tsv. Of its two samples, `cis` has both SNVs of each pair on one
chromosome, `trans` one on each. What a pair really does is computed as in simulate.py.
"""

import numpy as np
import pysam
import simulate
from simulate import EXPERIMENTS, HERE, INPUT, MOTIFS, decode

SEED = 20242
EACH = 6
APART = 2 * INPUT  # from one pair to the next
REACH = 300  # of two sites of a pair
KINDS = (
    "compensated",  # one breaks a site, the other one mends a near miss beside it
    "redundant",  # each breaks the same site
    "both needed",  # two wrong bases of what is then a site
    "both created",  # each mends a near miss: twice the reads of one, and not their product
)


def allowed_at(pattern, strand):
    """The codes that match at each base of the genome, from the left."""
    allowed = simulate.allowed_codes(pattern)
    return allowed if strand == "+" else [3 - one for one in reversed(allowed)]


def mended(contig, pattern, start, strand):
    """The SNVs (position, code) that make a site of what stands there."""
    return [
        (start + j, int(one[0]))
        for j, one in enumerate(allowed_at(pattern, strand))
        if contig[start + j] not in one
    ]


def broken(rng, pattern, start, strand):
    """Two SNVs that each break a site."""
    allowed = allowed_at(pattern, strand)
    places = [j for j, one in enumerate(allowed) if len(one) == 1]
    return [
        (start + int(j), int(rng.choice(np.setdiff1d(np.arange(4), allowed[j]))))
        for j in rng.choice(places, 2, replace=False)
    ]


def candidates(rng, genome, kind):
    """(contig name, motif, both SNVs), in random order. Not yet checked."""
    wrong = {"compensated": 0, "redundant": 0, "both needed": 2, "both created": 1}[kind]
    found = [
        (name, motif, start, strand)
        for motif, pattern in MOTIFS.items()
        for name, contig in genome.items()
        for _, start, strand in simulate.find_sites(contig[None], pattern, wrong)
    ]
    for i in rng.permutation(len(found)):
        name, motif, start, strand = found[i]
        contig, pattern = genome[name], MOTIFS[motif]
        if kind == "redundant":
            yield name, motif, broken(rng, pattern, start, strand)
        elif kind == "both needed":
            yield name, motif, mended(contig, pattern, start, strand)
        else:
            one = broken if kind == "compensated" else mended
            first = (
                broken(rng, pattern, start, strand)
                if one is broken
                else mended(contig, pattern, start, strand)
            )[0]
            low = max(start - REACH, 0)
            near = simulate.find_sites(contig[None, low : start + REACH], pattern, 1)
            for _, other, other_strand in near:
                if abs(low + other - start) > len(pattern):
                    yield name, motif, [first, *mended(contig, pattern, low + other, other_strand)]
                    break


def log_counts(contig, snvs, experiment):
    """log2(reads + 1) in the output of the reference, of each SNV alone, and of both."""
    at = sum(pos for pos, _ in snvs) // 2
    chromosomes = np.stack([contig] * 4)[:, at - INPUT // 2 : at - INPUT // 2 + INPUT].copy()
    for changed, (pos, code) in zip(([1, 3], [2, 3]), snvs, strict=True):
        chromosomes[changed, pos - at + INPUT // 2] = code
    signal = simulate.expected_signal(chromosomes, experiment)
    return np.log2(simulate.output_part(signal).sum(axis=1) + 1)


def effects(contig, snvs):
    """By experiment: log2 fold change of both, the sum of each, and the interaction."""
    found = {}
    for experiment in EXPERIMENTS:
        none, one, other, both = log_counts(contig, snvs, experiment)
        joint, total = both - none, one + other - 2 * none
        found[experiment] = joint, total, joint - total
    return found


def choose(rng, genome):
    """(contig name, kind, motif, both SNVs, effects), along the genome."""
    taken = []
    for kind in KINDS:
        number = 0
        for name, motif, snvs in candidates(rng, genome, kind):
            snvs = sorted(snvs)
            (first, _), (last, _) = snvs
            inside = first > APART and last < len(genome[name]) - APART
            free = all(n != name or abs(first - s[0][0]) > APART for n, _, _, s, _ in taken)
            if not inside or not free:
                continue
            of_pair = effects(genome[name], snvs)
            # Where the motif is active they interact, and nowhere else.
            if all(
                abs(interaction) > 0.3 if motif in EXPERIMENTS[e] else abs(interaction) < 0.01
                for e, (*_, interaction) in of_pair.items()
            ):
                taken.append((name, kind, motif, snvs, of_pair))
                number += 1
            if number == EACH:
                break
    order = list(genome)
    return sorted(taken, key=lambda one: (order.index(one[0]), one[3]))


def main(folder=HERE):
    genome = simulate.simulate_genome()
    lines = [
        "##fileformat=VCFv4.2",
        "##source=cherimoya-veff resources/demo/pairs.py (simulated)",
        *(f"##contig=<ID={name},length={len(codes)}>" for name, codes in genome.items()),
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tcis\ttrans",
    ]
    columns = ["chrom", "pos_1", "pos_2", "kind", "motif"]
    columns += [f"{what}_{e}" for e in EXPERIMENTS for what in ("joint", "sum", "interaction")]
    rows = ["\t".join(columns)]
    pairs = choose(np.random.default_rng(SEED), genome)
    for number, (name, kind, motif, snvs, of_pair) in enumerate(pairs, 1):
        contig = genome[name]
        for (pos, code), letter, trans in zip(snvs, "ab", ("1|0", "0|1"), strict=True):
            alleles = decode(contig[pos : pos + 1]), decode(np.array([code]))
            cells = [name, str(pos + 1), f"pair{number:02d}{letter}", *alleles]
            lines.append("\t".join([*cells, ".", "PASS", ".", "GT", "1|0", trans]))
        row = [name, *(str(pos + 1) for pos, _ in snvs), kind, motif]
        rows.append("\t".join([*row, *(f"{x + 0.0:.4f}" for e in of_pair.values() for x in e)]))
    with pysam.BGZFile(str(folder / "pairs.vcf.gz"), "w") as out:
        out.write("\n".join([*lines, ""]).encode())
    (folder / "pairs.tsv").write_text("\n".join([*rows, ""]))


if __name__ == "__main__":
    main()
