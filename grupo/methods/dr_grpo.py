"""Dr. GRPO. Liu et al., 2025, arXiv:2503.20783."""

from grupo.credit import Center
from grupo.losses import Clip
from grupo.method import Method
from grupo.sampling import Independent
from grupo.weights import FixedLength


def dr_grpo(length: int, group: int = 8, clip: float = 0.2) -> Method:
    """A = r - mean(r), and every token over one constant `length`: no bias to short or to hard."""
    return Method(
        sample=Independent(group), credit=Center(), loss=Clip(clip, clip), weigh=FixedLength(length)
    )
