"""A player of whom nothing is expected: it does whatever it is offered."""

from random import Random
from re import findall

from grupo.core.component import piece
from grupo.core.types import Observation


@piece
class Offered:
    """One of the moves that were offered last, at random: what stands in brackets and quotes.

    A move is what `pattern` finds in the last line where it finds any.

    >>> Offered()("For example '[4]'.\\n\\nAvailable Moves: '[7]'", Random(0))
    '[7]'
    """

    pattern: str = r"'(\[[^\]']+\])'"

    def __call__(self, said: Observation, chance: Random) -> str:
        text = said if isinstance(said, str) else "\n".join(str(m["content"]) for m in said)
        offers = [found for line in text.splitlines() if (found := findall(self.pattern, line))]
        return chance.choice(offers[-1]) if offers else ""
