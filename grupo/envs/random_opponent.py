"""A player of whom nothing is expected: it does whatever it is offered."""

from random import Random
from re import findall

from grupo.core.component import component
from grupo.core.types import Observation


@component
class RandomOpponent:
    """One of the moves that were offered last, at random: what stands in brackets and quotes.

    A move is what `pattern` finds in the last line where it finds any.

    >>> RandomOpponent()("For example '[4]'.\\n\\nAvailable Moves: '[7]'", Random(0))
    '[7]'
    """

    move_pattern: str = r"'(\[[^\]']+\])'"

    def __call__(self, observation: Observation, rng: Random) -> str:
        text = (
            observation
            if isinstance(observation, str)
            else "\n".join(str(m["content"]) for m in observation)
        )
        offers = [
            found for line in text.splitlines() if (found := findall(self.move_pattern, line))
        ]
        return rng.choice(offers[-1]) if offers else ""
