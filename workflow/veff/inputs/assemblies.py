"""Which assembly has chromosomes of these lengths, and what does RefSeq call them?"""

# Lengths of chr1, chr2, ..., chrX, chrY as UCSC and NCBI publish them.
# fmt: off
_HUMAN = [*map(str, range(1, 23)), "X", "Y"]
_MOUSE = [*map(str, range(1, 20)), "X", "Y"]
ASSEMBLIES = {
    "hg19": dict(zip(_HUMAN, (
        249250621, 243199373, 198022430, 191154276, 180915260, 171115067, 159138663, 146364022,
        141213431, 135534747, 135006516, 133851895, 115169878, 107349540, 102531392, 90354753,
        81195210, 78077248, 59128983, 63025520, 48129895, 51304566, 155270560, 59373566,
    ), strict=True)),
    "hg38": dict(zip(_HUMAN, (
        248956422, 242193529, 198295559, 190214555, 181538259, 170805979, 159345973, 145138636,
        138394717, 133797422, 135086622, 133275309, 114364328, 107043718, 101991189, 90338345,
        83257441, 80373285, 58617616, 64444167, 46709983, 50818468, 156040895, 57227415,
    ), strict=True)),
    "T2T-CHM13": dict(zip(_HUMAN, (
        248387328, 242696752, 201105948, 193574945, 182045439, 172126628, 160567428, 146259331,
        150617247, 134758134, 135127769, 133324548, 113566686, 101161492, 99753195, 96330374,
        84276897, 80542538, 61707364, 66210255, 45090682, 51324926, 154259566, 62460029,
    ), strict=True)),
    "mm10": dict(zip(_MOUSE, (
        195471971, 182113224, 160039680, 156508116, 151834684, 149736546, 145441459, 129401213,
        124595110, 130694993, 122082543, 120129022, 120421639, 124902244, 104043685, 98207768,
        94987271, 90702639, 61431566, 171031299, 91744698,
    ), strict=True)),
    "mm39": dict(zip(_MOUSE, (
        195154279, 181755017, 159745316, 156860686, 151758149, 149588044, 144995196, 130127694,
        124359700, 130530862, 121973369, 120092757, 120883175, 125139656, 104073951, 98008968,
        95294699, 90720763, 61420004, 169476592, 91455967,
    ), strict=True)),
}

# RefSeq's accessions: the number of the first chromosome, of which the others follow, and the
# version of each, in the order above.
_VERSIONS = {
    "hg19": (1, (
        10, 11, 11, 11, 9, 11, 13, 10, 11, 10, 9, 11, 10, 8, 9, 9, 10, 9, 9, 10, 8, 10, 10, 9,
    )),
    "hg38": (1, (
        11, 12, 12, 12, 10, 12, 14, 11, 12, 11, 10, 12, 11, 9, 10, 10, 11, 10, 10, 11, 9, 11, 11,
        10,
    )),
    "T2T-CHM13": (60925, (1,) * 24),
    "mm10": (67, (6, 7, *(6,) * 17, 7, 7)),
    "mm39": (67, (7, 8, *(7,) * 17, 8, 8)),
}
# fmt: on

# The chromosome and its length; a mitochondrion belongs to several assemblies.
ACCESSIONS = {
    f"NC_{first + i:06}.{version}": chromosome
    for assembly, (first, versions) in _VERSIONS.items()
    for i, (version, chromosome) in enumerate(
        zip(versions, ASSEMBLIES[assembly].items(), strict=True)
    )
} | {"NC_012920.1": ("MT", 16569), "NC_001807.4": ("M", 16571), "NC_005089.1": ("MT", 16299)}


def assembly(names: list[str], lengths: list[int]) -> str | None:
    """The assembly whose chromosome lengths these are: of those it names, every one must fit."""
    found = {name.removeprefix("chr"): length for name, length in zip(names, lengths, strict=True)}
    for which, chromosomes in ASSEMBLIES.items():
        fits = [found[name] == chromosomes[name] for name in found.keys() & chromosomes.keys()]
        if fits and all(fits):
            return which
    return None
