"""Decoding inside the model: what a turn strategy asks of the engine, besides ordinary answers."""

from dataclasses import dataclass

from grupo.core.component import component
from grupo.core.ranges import FinitePositive, FractionBelowOne, PositiveInt
from grupo.core.units import Tokens


@dataclass(frozen=True)
class LockStep:
    """Continuations of one prompt that are generated in lock step, each reading all of them.

    The next token of a continuation attends to the prompt, to its own tokens, and to the tokens
    that the other continuations had before this step. Each continuation has a block of positions of
    its own behind the prompt.

    Args:
        starts: The given tokens with which each continuation begins; () for none.
    """

    starts: tuple[tuple[int, ...], ...]

    @property
    def num_given(self) -> int:
        """Number of tokens that the model reads besides the prompt."""
        return sum(map(len, self.starts))


@component
class EntropySteering:
    """An answer whose entropy is raised while its moving average rises, and lowered after its peak.

    An offset on the prompt's values in the last layer's cache, 0 at first, is moved by Adam along
    the gradient of the entropy of the next token. The weights of the model stay as they are.

    Args:
        every: Number of generated tokens from one update of the offset to the next.
        steps: Number of gradient steps of an update.
        learning_rate: Size of a step of Adam, in the unit of the values.
        decay: Decay of the moving average of the entropy, for each token.
    """

    every: Tokens = 2
    steps: PositiveInt = 1
    learning_rate: FinitePositive = 0.01
    decay: FractionBelowOne = 0.98

    @property
    def num_given(self) -> int:
        """Number of tokens that the model reads besides the prompt: none."""
        return 0


Decoding = LockStep | EntropySteering
