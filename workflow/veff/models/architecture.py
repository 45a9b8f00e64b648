"""What does a model look like, and how long are its windows?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Geometry:
    """A model reads `input_length` bases and predicts the `output_length` in their middle."""

    input_length: int
    output_length: int

    @property
    def trimming(self) -> int:
        """Input positions without output, on each side."""
        return (self.input_length - self.output_length) // 2
