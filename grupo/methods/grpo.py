"""GRPO. Shao et al., 2024, arXiv:2402.03300."""

from grupo.losses import KL, Clip
from grupo.method import Method
from grupo.sampling import Independent


def grpo(group: int = 8, clip: float = 0.2, kl: float = 0.04) -> Method:
    """A = (r - mean(r)) / std(r) of the group; clipped surrogate + `kl` k3; sequence mean."""
    # section 4.2: "the KL coefficient is 0.04 ... we sample 64 outputs"; 8 is what fits everywhere
    loss = Clip(clip, clip) + kl * KL() if kl else Clip(clip, clip)
    return Method(sample=Independent(group), loss=loss)
