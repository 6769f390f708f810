"""An opponent that plays one of the offered moves at random."""

from random import Random

from grupo.core.component import component
from grupo.core.message_content import content_text
from grupo.core.types import Observation
from grupo.util.linear_patterns import LinearPattern


@component
class RandomOpponent:
    """Plays one of the moves offered last in the observation, at random.

    Args:
        move_pattern: Regular expression of RE2 for a move, or with a group that is the move. The
            offered moves are its matches in the last line that has any; the default matches a
            bracketed move in single quotes, '[4]'.

    >>> RandomOpponent()("For example '[4]'.\\n\\nAvailable Moves: '[7]'", Random(0))
    '[7]'
    """

    move_pattern: str = r"'(\[[^\]']+\])'"

    def __post_init__(self) -> None:
        LinearPattern(self.move_pattern, "move_pattern")

    def __call__(self, observation: Observation, rng: Random) -> str:
        pattern = LinearPattern(self.move_pattern, "move_pattern")
        lines = _text(observation).splitlines()
        offers = [moves for line in lines if (moves := pattern.matches(line))]
        return rng.choice(offers[-1]) if offers else ""


def _text(observation: Observation) -> str:
    if isinstance(observation, str):
        return observation
    return "\n".join(content_text(message["content"]) for message in observation)
