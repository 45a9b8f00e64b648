"""Which contigs are these, whatever their names and the file that they come from?"""

import hashlib

from veff.inputs.reference import Reference

BLOCK = 1 << 24  # bases


def hashes(reference: Reference) -> list[str]:
    """The SHA-256 of each contig's bases, as upper-case ASCII, in the order of the FASTA file."""
    found = []
    for contig, length in enumerate(reference.lengths.tolist()):
        of_contig = hashlib.sha256()
        for start in range(0, length, BLOCK):
            of_contig.update(reference.fetch(contig, start, start + BLOCK))
        found.append(of_contig.hexdigest())
    return found
