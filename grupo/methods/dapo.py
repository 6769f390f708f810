"""DAPO. Yu et al., 2025, arXiv:2503.14476."""

from grupo.credit import Center, OverlongPenalty, ScaleByStd, chain
from grupo.curate import informative
from grupo.curricula import Refilled, Shuffled
from grupo.losses import Clip
from grupo.method import Method
from grupo.sampling import Independent
from grupo.weights import token_mean


def dapo(
    limit: int, margin: int, group: int = 16, low: float = 0.2, high: float = 0.28, rounds: int = 10
) -> Method:
    """Clip-higher, dynamic sampling, token mean and overlong shaping: eq.

    8 to 13; 10 rounds as in the released code.
    """
    return Method(
        curriculum=Refilled(Shuffled(), rounds),
        sample=Independent(group),
        curate=informative,
        credit=chain(OverlongPenalty(limit, margin), Center(), ScaleByStd()),
        loss=Clip(low, high),
        weigh=token_mean,
    )
