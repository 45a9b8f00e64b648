"""What does a model look like, and how long are its windows?"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Geometry:
    """A model reads `input_length` bases and predicts the `output_length` in their middle."""

    input_length: int
    output_length: int

    @property
    def trimming(self) -> int:
        """Input positions without output, on each side."""
        return (self.input_length - self.output_length) // 2


@dataclass(frozen=True)
class Architecture:
    """What decides which kernels a model launches, and with which shapes.

    The first five are Cherimoya's own arguments; `signal_groups` has the number of channels of
    each group. Lengths are in bp.
    """

    n_filters: int
    n_layers: int
    expansion: float
    signal_groups: tuple[int, ...]
    n_control_tracks: int
    input_length: int
    output_length: int

    @classmethod
    def of(cls, plain: Mapping) -> "Architecture":
        """From plain values, such as a row of models.json; other keys are left aside."""
        values = {one.name: plain[one.name] for one in fields(cls)}
        return cls(**values | {"signal_groups": tuple(values["signal_groups"])})

    def plain(self) -> dict:
        """As JSON has it."""
        return asdict(self) | {"signal_groups": list(self.signal_groups)}

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.input_length, self.output_length)

    @property
    def arguments(self) -> dict:
        """The arguments that `Cherimoya` makes such a model from."""
        shape = {key: value for key, value in self.plain().items() if key in SHAPE}
        return shape | {"trimming": self.geometry.trimming}


SHAPE = tuple(one.name for one in fields(Architecture) if not one.name.endswith("_length"))
