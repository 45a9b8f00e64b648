"""Simulate the demo: a genome with planted motifs, variants on it, and what they really do.

    python resources/demo/simulate.py

It rewrites genome.fa.gz, variants.vcf.gz, truth.tsv, effects.tsv and motifs.meme.

Nothing here comes from an organism. The signal is an exact function of the sequence
(`expected_signal`), so the true effect of any variant can be computed, and `train.py` draws
training windows from the same functions with another seed.
"""

from pathlib import Path

import numpy as np
import pysam

HERE = Path(__file__).resolve().parent
GENOME_SEED, VARIANT_SEED = 20240, 20241

CONTIGS = {"simA": 140_000, "simB": 90_000, "simC": 60_000, "simD": 10_000}
COMPOSITION = [0.295, 0.205, 0.205, 0.295]  # A, C, G, T: 41 % G+C, as in a mammalian genome
INPUT, OUTPUT = 2114, 1000

# Invented motifs as IUPAC consensus sequences. A site is an exact match, on either strand.
MOTIFS = {"motif1": "CTTGRCAATC", "motif2": "GGAWTNCCGTAAG", "motif3": "ACGCYATT"}
# Reads that one site adds to the window, by experiment; a motif that is not named is inactive.
EXPERIMENTS = {
    "cellA": {"motif1": 240.0, "motif2": 140.0},
    "cellB": {"motif2": 140.0, "motif3": 240.0},
}
BACKGROUND = 0.1  # reads per base everywhere
BUMP = np.hanning(27)[1:-1] / np.hanning(27).sum()  # a site's reads, spread over 25 bp

# Each stretch of SLOT bp holds one motif in one of these forms, or nothing. The last two are the
# near misses from which a model must learn that every base of a motif counts.
SLOT = 100
FORMS = {"nothing": 0.7, "site": 0.12, "one base wrong": 0.12, "interrupted": 0.06}
SPACER = 3  # bases that interrupt an interrupted motif

N = 4  # the code of an unknown base; A, C, G, T are 0 to 3, so a complement is 3 - code
LETTERS = np.frombuffer(b"ACGTN", np.uint8)
IUPAC = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "W": "AT", "N": "ACGT"}


def encode(text):
    """Codes (int8) of a sequence in upper-case letters."""
    return np.array(["ACGTN".index(letter) for letter in text], np.int8)


def decode(codes):
    return LETTERS[codes].tobytes().decode()


def allowed_codes(pattern):
    """For each position of an IUPAC pattern, the codes that match it."""
    return [encode(IUPAC[letter]) for letter in pattern]


def sample_motif(rng, pattern, form, n):
    """`n` instances of a motif in one of `FORMS`, on random strands: codes [n, width]."""
    allowed = allowed_codes(pattern)
    codes = np.stack([rng.choice(a, n) for a in allowed], axis=1)
    if form == "one base wrong":
        wrong = rng.choice([j for j, a in enumerate(allowed) if len(a) < 4], n)
        for j in np.unique(wrong):
            codes[wrong == j, j] = rng.choice(
                np.setdiff1d(np.arange(4), allowed[j]), (wrong == j).sum()
            )
    elif form == "interrupted":
        half = len(pattern) // 2
        spacer = rng.choice(4, (n, SPACER), p=COMPOSITION)
        codes = np.concatenate([codes[:, :half], spacer, codes[:, half:]], axis=1)
    reverse = rng.random(n) < 0.5
    codes[reverse] = 3 - codes[reverse, ::-1]
    return codes.astype(np.int8)


def simulate_sequences(rng, n, length):
    """`n` independent sequences with planted motifs: codes [n, length]."""
    codes = rng.choice(4, (n, length), p=COMPOSITION).astype(np.int8)
    slots = (n, length // SLOT)
    form = rng.choice(len(FORMS), slots, p=list(FORMS.values()))
    motif = rng.integers(len(MOTIFS), size=slots)
    for f, form_name in enumerate(FORMS):
        if form_name == "nothing":
            continue
        for m, pattern in enumerate(MOTIFS.values()):
            rows, columns = np.nonzero((form == f) & (motif == m))
            planted = sample_motif(rng, pattern, form_name, len(rows))
            width = planted.shape[1]
            starts = columns * SLOT + rng.integers(SLOT - width + 1, size=len(rows))
            codes[rows[:, None], starts[:, None] + np.arange(width)] = planted
    return codes


def mismatches(codes, pattern, strand):
    """How many bases differ from the pattern, for each start in codes [n, L]: [n, L - w + 1]."""
    allowed = allowed_codes(pattern)
    if strand == "-":
        allowed = [3 - a for a in reversed(allowed)]
    starts = codes.shape[1] - len(pattern) + 1
    wrong = np.zeros((len(codes), max(starts, 0)), np.int8)
    for j, a in enumerate(allowed):
        matches = np.zeros(5, bool)
        matches[a] = True
        wrong += ~matches[codes[:, j : j + wrong.shape[1]]]
    return wrong


def find_sites(codes, pattern, wrong=0):
    """Every (row, start, strand) in codes [n, L] with exactly `wrong` mismatches."""
    return [
        (row, start, strand)
        for strand in "+-"
        for row, start in np.argwhere(mismatches(codes, pattern, strand) == wrong).tolist()
    ]


def expected_signal(codes, experiment):
    """Expected reads per base, for codes [n, L]: flat, plus one 25-bp bump a site. [n, L]"""
    n, length = codes.shape
    margin = len(BUMP) // 2
    signal = np.full((n, length + 2 * margin), BACKGROUND)
    for motif, reads in EXPERIMENTS[experiment].items():
        sites = find_sites(codes, MOTIFS[motif])
        rows = np.array([row for row, _, _ in sites], int)
        centres = np.array([start for _, start, _ in sites], int) + len(MOTIFS[motif]) // 2
        np.add.at(signal, (rows[:, None], centres[:, None] + np.arange(len(BUMP))), reads * BUMP)
    return signal[:, margin:-margin]


def output_part(signal):
    """The bases of a window that a model predicts."""
    return signal[:, (INPUT - OUTPUT) // 2 : (INPUT + OUTPUT) // 2]


def window_pair(contig, pos, ref, alt):
    """Reference and alternate window around a variant (0-based position): codes [2, INPUT].

    Both start INPUT // 2 bases before the variant; past the contig's ends stand Ns.
    """
    padded = np.pad(contig, INPUT, constant_values=N)
    start = pos - INPUT // 2 + INPUT
    left, after = padded[start : pos + INPUT], pos + INPUT + len(ref)
    tail = padded[after : after + INPUT]
    reference = padded[start : start + INPUT]
    alternate = np.concatenate([left, encode(alt), tail])[:INPUT]
    return np.stack([reference, np.pad(alternate, (0, INPUT - len(alternate)), constant_values=N)])


def site_change(contig, pos, ref, alt):
    """What a variant does to the sites within reach of it: (class, motif or None).

    Returns None for an allele that changes the sites of two motifs: the demo has none.
    """
    assert decode(contig[pos : pos + len(ref)]) == ref
    reach = max(map(len, MOTIFS.values()))
    left = contig[max(pos - reach, 0) : pos]
    right = contig[pos + len(ref) : pos + len(ref) + reach]
    before, after = (np.concatenate([left, encode(a), right])[None] for a in (ref, alt))
    change = {m: len(find_sites(after, p)) - len(find_sites(before, p)) for m, p in MOTIFS.items()}
    changed = {m: d for m, d in change.items() if d}
    if len(changed) > 1:
        return None
    for motif, difference in changed.items():
        return ("creates" if difference > 0 else "breaks"), motif
    return "spares", None


def true_logfc(contig, pos, ref, alt):
    """{experiment: log2((alternate + 1) / (reference + 1)) of the expected reads in the output}"""
    pair = window_pair(contig, pos, ref, alt)
    reads = {e: output_part(expected_signal(pair, e)).sum(axis=1) for e in EXPERIMENTS}
    return {e: float(np.diff(np.log2(r + 1))[0]) for e, r in reads.items()}


def find_places(genome):
    """Where each motif stands, [(contig name, start, strand)] for each motif, by form."""

    def occurrences(patterns, wrong):
        return [
            [
                (name, start, strand)
                for name, contig in genome.items()
                for _, start, strand in find_sites(contig[None], pattern, wrong)
            ]
            for pattern in patterns
        ]

    patterns = MOTIFS.values()
    halves = [p[: len(p) // 2] + "N" * SPACER + p[len(p) // 2 :] for p in patterns]
    return {
        "site": occurrences(patterns, 0),
        "one base wrong": occurrences(patterns, 1),
        "interrupted": occurrences(halves, 0),
    }


def candidates(rng, genome, places, kind):
    """Endless variants of one kind: (contig name, 0-based position, REF, ALT). Not yet checked."""
    names = list(genome)
    lengths = np.array([len(genome[name]) for name in names], float)
    patterns = list(MOTIFS.values())
    form = "one base wrong" if kind in ("SNV creates", "SNV in a near miss") else "site"

    def random_bases(low, high):
        return decode(rng.choice(4, rng.integers(low, high + 1), p=COMPOSITION))

    def pick(items):
        return items[rng.integers(len(items))]

    while True:
        m = int(rng.integers(len(patterns)))
        pattern = patterns[m]
        if kind in ("SNV away", "deletion away", "insertion away", "insertion creates"):
            name = str(rng.choice(names, p=lengths / lengths.sum()))
            pos = int(rng.integers(len(genome[name]) - 50))
        elif kind == "deletion creates":
            name, pos, strand = pick(places["interrupted"][m])
            # The left part of the motif's reverse complement is its longer half.
            pos += len(pattern) // 2 if strand == "+" else len(pattern) - len(pattern) // 2
        else:
            name, pos, _ = pick(places[form][m])
            pos += int(rng.integers(len(pattern)))
        contig = genome[name]
        if kind.startswith("SNV"):
            ref = decode(contig[pos : pos + 1])
            yield name, pos, ref, str(rng.choice([b for b in "ACGT" if b != ref]))
            continue
        pos -= 1  # an indel's alleles start with the base before it
        if pos < 0:
            continue
        anchor = decode(contig[pos : pos + 1])
        if kind == "deletion creates":
            yield name, pos, decode(contig[pos : pos + 1 + SPACER]), anchor
        elif kind.startswith("deletion"):
            size = int(rng.integers(1, 13 if kind == "deletion away" else 5))
            yield name, pos, decode(contig[pos : pos + 1 + size]), anchor
        elif kind == "insertion creates":
            yield name, pos, anchor, anchor + decode(sample_motif(rng, pattern, "site", 1)[0])
        else:
            yield name, pos, anchor, anchor + random_bases(1, 12 if "away" in kind else 6)


WANTED = {  # kind: (the class that it must turn out to be, how many)
    "SNV breaks": ("breaks", 60),
    "SNV creates": ("creates", 45),
    "SNV away": ("spares", 80),
    "SNV in a site": ("spares", 15),  # another base that the motif allows
    "SNV in a near miss": ("spares", 15),
    "deletion breaks": ("breaks", 15),
    "deletion creates": ("creates", 12),
    "deletion away": ("spares", 15),
    "insertion breaks": ("breaks", 12),
    "insertion creates": ("creates", 12),
    "insertion away": ("spares", 15),
}


def choose_variants(rng, genome):
    """Records (contig, 0-based position, REF, [ALT, ...], INFO), none within 40 bp of another
    but for the ones that test just that."""
    taken = []

    def free(name, pos, margin=INPUT // 2 + 50):
        inside = margin <= pos < len(genome[name]) - margin
        return inside and all(name != n or abs(pos - p) > 40 for n, p in taken)

    def take(name, pos, ref, alts, info="."):
        taken.append((name, pos))
        records.append((name, pos, ref, alts, info))

    records = []
    places = find_places(genome)
    for kind, (wanted, number) in WANTED.items():
        found = 0
        for name, pos, ref, alt in candidates(rng, genome, places, kind):
            if not free(name, pos):
                continue
            effect = site_change(genome[name], pos, ref, alt)
            if effect is None or effect[0] != wanted:
                continue
            # A long indel may also push a far site over the window's edge: not wanted here.
            if wanted == "spares":
                logfc = true_logfc(genome[name], pos, ref, alt)
                if max(map(abs, logfc.values())) > 0.01:
                    continue
            take(name, pos, ref, [alt])
            found += 1
            if found == number:
                break

    # Multiallelic: at motif1's R, one ALT that the motif allows and two that break it.
    for _, start, strand in find_sites(genome["simA"][None], MOTIFS["motif1"]):
        pos = start + (4 if strand == "+" else 5)
        if free("simA", pos):
            ref = decode(genome["simA"][pos : pos + 1])
            take("simA", pos, ref, [b for b in "ACGT" if b != ref])
            break

    # A SNV that breaks a site so close to a contig's end that its window is padded.
    name, start = next(
        (name, start)
        for sites in places["site"]
        for name, start, _ in sites
        if min(start, len(genome[name]) - start) < INPUT // 2 - 100
    )
    present = decode(genome[name][start : start + 1])
    breaking = next(
        b
        for b in "ACGT"
        if b != present and site_change(genome[name], start, present, b)[0] == "breaks"
    )
    take(name, start, present, [breaking])

    # The same allele twice; a `*` inside a deletion of this file; a symbolic allele; a wrong REF.
    records.append(records[0])
    name, pos, ref, _, _ = next(r for r in records if len(r[2]) > 3 and len(r[3][0]) == 1)
    records.append((name, pos + 2, ref[2], ["*"], "."))
    name, pos = "simB", 30_000
    while not free(name, pos):
        pos += 50
    take(name, pos, decode(genome[name][pos : pos + 1]), ["<DEL>"], f"SVTYPE=DEL;END={pos + 501}")
    while not free(name, pos):
        pos += 50
    present = decode(genome[name][pos : pos + 1])
    absent = [b for b in "ACGT" if b != present]
    take(name, pos, absent[0], [absent[1]])

    order = list(genome)
    return sorted(records, key=lambda r: (order.index(r[0]), r[1]))


def simulate_genome():
    """{contig name: codes}."""
    rng = np.random.default_rng(GENOME_SEED)
    return {name: simulate_sequences(rng, 1, length)[0] for name, length in CONTIGS.items()}


def write_motifs(path):
    """The planted motifs in MEME's format: bases that a pattern allows are as likely."""
    lines = ["MEME version 4", "", "ALPHABET= ACGT", "", "strands: + -"]
    for name, pattern in MOTIFS.items():
        lines += ["", f"MOTIF {name}", f"letter-probability matrix: alength= 4 w= {len(pattern)}"]
        for allowed in allowed_codes(pattern):
            chance = np.isin(np.arange(4), allowed) / len(allowed)
            lines.append(" ".join(f"{p:.6f}" for p in chance))
    path.write_text("\n".join([*lines, ""]))


def main(folder=HERE):
    genome = simulate_genome()
    with pysam.BGZFile(str(folder / "genome.fa.gz"), "w") as out:
        for name, codes in genome.items():
            text = decode(codes)
            lines = "\n".join(text[i : i + 80] for i in range(0, len(text), 80))
            out.write(f">{name}\n{lines}\n".encode())

    records = choose_variants(np.random.default_rng(VARIANT_SEED), genome)
    header = [
        "##fileformat=VCFv4.2",
        "##source=cherimoya-veff resources/demo/simulate.py (simulated)",
        '##FILTER=<ID=PASS,Description="All filters passed">',
        *(f"##contig=<ID={name},length={len(codes)}>" for name, codes in genome.items()),
        '##ALT=<ID=DEL,Description="Deletion">',
        '##INFO=<ID=SVTYPE,Number=1,Type=String,Description="Type of structural variant">',
        '##INFO=<ID=END,Number=1,Type=Integer,Description="End position of the variant">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO",
    ]
    experiments = list(EXPERIMENTS)
    columns = ["chrom", "pos", "id", "ref", "alt", "class", "motif"]
    columns += [f"sign_{e}" for e in experiments] + [f"logfc_{e}" for e in experiments]
    lines, truth = [], ["\t".join(columns)]
    effects = ["chrom\tpos\tref\talt\texperiment\tlogfc\tchanges"]
    for number, (name, pos, ref, alts, info) in enumerate(records, 1):
        site = [name, str(pos + 1), f"sim{number:04d}", ref]
        lines.append("\t".join([*site, ",".join(alts), ".", "PASS", info]))
        for alt in alts:
            scoreable = set(alt) <= set("ACGT") and (
                decode(genome[name][pos : pos + len(ref)]) == ref
            )
            if scoreable:
                kind, motif = site_change(genome[name], pos, ref, alt)
                direction = {"breaks": -1, "spares": 0, "creates": 1}[kind]
                logfc = true_logfc(genome[name], pos, ref, alt)
                row = [kind, motif or "NA"]
                row += [str(direction * (motif in EXPERIMENTS[e])) for e in experiments]
                row += [f"{logfc[e] + 0.0:.4f}" for e in experiments]
                for e in experiments:
                    changes = int(motif in EXPERIMENTS[e])
                    one = [name, str(pos + 1), ref, alt, e, f"{logfc[e] + 0.0:.4f}", str(changes)]
                    effects.append("\t".join(one))
            else:
                row = ["not_scored"] + ["NA"] * (1 + 2 * len(experiments))
            truth.append("\t".join([*site, alt, *row]))
    with pysam.BGZFile(str(folder / "variants.vcf.gz"), "w") as out:
        out.write("\n".join([*header, *lines, ""]).encode())
    write_motifs(folder / "motifs.meme")
    (folder / "truth.tsv").write_text("\n".join([*truth, ""]))
    (folder / "effects.tsv").write_text("\n".join([*effects, ""]))


if __name__ == "__main__":
    main()
