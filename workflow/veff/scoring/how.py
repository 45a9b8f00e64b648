"""How does a run predict, and how do an experiment's folds become its answer?"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class How:
    """What score, null, setup and top must all know, so that none contradicts another.

    `device` ('auto', 'cpu', 'cuda') and `gpu_model` say where; `precision` and `engine` are those
    of `engine.Predictor`. `ensemble`: 'mean_prediction' averages the folds' predictions and
    scores the average, 'mean_score' averages the folds' scores, 'heldout' those of the folds that
    did not train on the allele's contig. `reverse_complement`: predict for
    both strands of each window and average (`ensemble.both_strands`). `version` is raised when
    the code comes to give other scores.
    """

    device: str = "auto"
    gpu_model: str | None = None
    precision: str = "fp32"
    engine: str = "fast"
    ensemble: str = "mean_prediction"
    reverse_complement: bool = False
    version: int = 1

    @property
    def decisive(self) -> dict:
        """What decides an answer besides the models: a part of a null's identity."""
        keys = ("ensemble", "reverse_complement", "precision", "version")
        return {key: getattr(self, key) for key in keys}

    @property
    def where(self) -> dict:
        """What the choice of a GPU depends on."""
        return {"device": self.device, "gpu_model": self.gpu_model}

    def on(self, gpus: int) -> "How":
        """The same, for a job that was promised so many GPUs: these settle `device: auto`.

        So a job whose scheduler gave it none stops, and scores nothing on a CPU of its own accord.
        """
        return replace(self, device="cuda" if gpus else "cpu") if self.device == "auto" else self
