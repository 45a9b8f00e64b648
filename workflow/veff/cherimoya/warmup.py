"""What must run once so that a job of some work benchmarks nothing?"""

import contextlib
import hashlib

import torch

from veff.cherimoya.engine import STREAMS, Predictor, on_gpu
from veff.cherimoya.lean import Cherimoya
from veff.cherimoya.proof import sample
from veff.models.architecture import Architecture


def exercise(work: dict, device: torch.device | str) -> str | None:
    """Run one batch of the shape that `work` describes; the sha256 of what comes out, but of
    attributions None: Cherimoya's kernels for gradients add by atomics, in any order.

    Its `task` is 'score', or 'attribute', which attributes two windows with `batch_size` shuffles.

    All that a job with this work launches on the device is launched here, the proof of the engine
    included, so that a cache warmed by this call needs no benchmark in a job. The model is an
    untrained one of the architecture and the batch is fixed, so the digest says whether two
    machines, or two caches, lead to the same bits.
    """
    architecture = Architecture.of(work)
    geometry = architecture.geometry
    model = Cherimoya(**architecture.arguments, compile=False, random_state=0)
    if work["task"] == "attribute":
        from veff.cherimoya import attribution  # a second of import, that scoring does without

        # Not shuffles, for which Numba compiles seconds.
        windows = sample(2 * work["batch_size"] + 3, geometry.input_length)[::2]
        references = attribution.one_hot(windows[2:])
        attribution.attributions(model.to(device).eval(), windows[:2], 0, device, references)
        return None
    bases = sample(work["batch_size"], geometry.input_length)
    if work["engine"] == "fast" and on_gpu(torch.device(device)):
        from triton import OutOfResources  # it may be missing on a CPU

        from veff.cherimoya.kernels import Network

        # Whichever stream the proof of a checkpoint will allow.
        for stream in STREAMS[work["precision"]]:
            with contextlib.suppress(OutOfResources):  # the proof gives way then
                Network(model.to(device), geometry, stream)(torch.from_numpy(bases).to(device))
    predictor = Predictor(
        model,
        geometry,
        device=device,
        precision=work["precision"],
        engine=work["engine"],
        batch_size=work["batch_size"],
    )
    outputs = predictor.predict(bases)
    digest = hashlib.sha256()
    for output in outputs:
        digest.update(output.cpu().numpy().tobytes())
    return digest.hexdigest()
