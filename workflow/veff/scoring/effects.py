"""How large is the effect of an allele: from two predictions to scores, every formula here.

A prediction for one signal group is a pair: `h` [N], the natural log of 1 + count over the T bp
of the output, and `p` [N, channels, T], probabilities that sum to 1 over channels and positions
together. Sums are in float64. No row's result depends on another row's.
"""

import math

import torch
import torch.nn.functional as F

SCORES = (
    "ref_counts",
    "alt_counts",
    "logfc",
    "logfc_501",
    "jsd",
    "abs_logfc",
    "logfc_x_jsd",
    "abs_logfc_x_jsd",
)
CENTRE = 501  # bp


def profile(logits: torch.Tensor) -> torch.Tensor:
    """Where a group's reads fall: the softmax of its logits over channels and positions together.

    [N, channels, T] to float64 of the same shape. Jointly, because so the profile head is trained
    (Cherimoya's loss and its `ExpectedCountsWrapper`).
    """
    z = logits.double().flatten(1)
    # Not torch.softmax, whose sums need not be the same in each row (see row_sums).
    weight = (z - z.amax(1, keepdim=True)).exp()
    return (weight / row_sums(weight).unsqueeze(1)).view(logits.shape)


def row_sums(x: torch.Tensor) -> torch.Tensor:
    """The sum of each row, [N, k] to [N], with the same bits for a row wherever it stands.

    A GPU adds in an order that depends on how a row's first element is aligned in memory: rows
    are filled up with zeros to whole vectors, so that all are aligned alike.
    """
    return F.pad(x, (0, -x.shape[1] % 8)).sum(1)


def counts(h: torch.Tensor) -> torch.Tensor:
    """Predicted reads over the T bp: max(expm1(h), 0), float64, of the shape of `h`.

    The head is trained on log(1 + count), and nothing keeps it from falling below zero.
    """
    return h.double().expm1().clamp(min=0)


def logfc(h_ref: torch.Tensor, h_alt: torch.Tensor) -> torch.Tensor:
    """log2((alt count + 1) / (ref count + 1)) over the T bp: (h_alt - h_ref) / ln 2, [N]."""
    return (h_alt.double() - h_ref.double()) / math.log(2)


def central_counts(h: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """Expected reads in the central 501 bp of the output, [N]: profile x counts, summed.

    Output positions T//2 - 250 to T//2 + 250 (250 to 750 for T = 1,000), of each allele's own
    window; all T where that is less.
    """
    middle = p.shape[-1] // 2
    centre = p[..., max(middle - CENTRE // 2, 0) : middle + CENTRE // 2 + 1]
    return row_sums(centre.double().flatten(1)) * counts(h)


def logfc_501(
    h_ref: torch.Tensor, p_ref: torch.Tensor, h_alt: torch.Tensor, p_alt: torch.Tensor
) -> torch.Tensor:
    """log2((S_alt + 1) / (S_ref + 1)), S the expected reads in the central 501 bp, [N].

    The window and the pseudocount are those of Chorus.
    """
    return ((central_counts(h_alt, p_alt) + 1) / (central_counts(h_ref, p_ref) + 1)).log2()


def aligned(
    p_ref: torch.Tensor, p_alt: torch.Tensor, index: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The two profiles at the positions that both alleles have, in reference coordinates.

    For t = 0, 1, ...: p_ref[index[0, t]] beside p_alt[index[1, t]], each renormalised to sum to
    1; the shape stays [N, channels, T], with zeros where `index` is -1.

    Parameters
    ----------
    p_ref, p_alt : [N, channels, T]
    index : int64 [2, N, T], as `shared` or `edits.paired` gives it. Left out where every position
        stands beside itself, which saves time and changes no bit.
    """
    p = torch.stack([p_ref, p_alt]).double()
    if index is not None:
        there = index.clamp(min=0).unsqueeze(2).expand(p.shape)
        p = p.gather(3, there) * (index >= 0).unsqueeze(2)
    # Where no probability is left, 0 / tiny rather than 0 / 0.
    total = row_sums(p.flatten(2).flatten(0, 1)).clamp(min=torch.finfo(torch.float64).tiny)
    ref, alt = p / total.view(2, -1, 1, 1)
    return ref, alt


def shared(breakpoint: torch.Tensor, shift: torch.Tensor, length: int) -> torch.Tensor:
    """The positions of two profiles of `length` bp that one indel leaves beside each other.

    int64 [2, N, length], for t in [0, length - abs(shift)): t + max(shift, 0) (t >= breakpoint)
    of the reference's, and t + max(-shift, 0) (t >= breakpoint) of the alternate's; then -1.

    Parameters
    ----------
    breakpoint, shift : int64 [N], as `windows.alignment` gives them: where the alleles end, in
        output coordinates, and ref_len - alt_len.
    """
    t = torch.arange(length, device=shift.device)
    skipped = torch.stack([shift, -shift]).clamp(min=0).unsqueeze(2)
    index = t + skipped * (t >= breakpoint.unsqueeze(1))
    return torch.where(t < length - shift.abs().unsqueeze(1), index, -1)


def jsd(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon distance in base 2 of two profiles, [N]: 0 for equal, 1 for disjoint.

    The square root of (KL(p, m) + KL(q, m)) / 2 with m = (p + q) / 2, summed over channels and
    positions (Lin 1991; Endres and Schindelin 2003). As `scipy.spatial.distance.jensenshannon`
    and variant-scorer's `jsd`.
    """
    both = torch.stack([p, q]).double().flatten(2)
    m = (both[0] + both[1]) / 2
    # 0 log 0 is 0; m is 0 only where both are.
    ratio = torch.where(both > 0, both / m, 1)
    of_p, of_q = row_sums((both * ratio.log2()).flatten(0, 1)).view(2, -1)
    return ((of_p + of_q) / 2).clamp(0, 1).sqrt()


def score(
    h_ref: torch.Tensor,
    p_ref: torch.Tensor,
    h_alt: torch.Tensor,
    p_alt: torch.Tensor,
    index: torch.Tensor | None = None,
) -> dict[str, torch.Tensor]:
    """Every score of `SCORES` for a batch of alleles and one signal group, float64 [N] each.

    `h` [N] and `p` [N, channels, T] are what a model, or an experiment, predicts for the
    reference and the alternate window; `index` is that of `aligned`.
    Names and definitions follow variant-scorer where it has the score.
    """
    change = logfc(h_ref, h_alt)
    distance = jsd(*aligned(p_ref, p_alt, index))
    return {
        "ref_counts": counts(h_ref),
        "alt_counts": counts(h_alt),
        "logfc": change,
        "logfc_501": logfc_501(h_ref, p_ref, h_alt, p_alt),
        "jsd": distance,
        "abs_logfc": change.abs(),
        "logfc_x_jsd": change * distance,
        "abs_logfc_x_jsd": change.abs() * distance,
    }
