"""CHORD-mu: from imitation to exploration on one schedule. Zhang et al., 2025, arXiv:2508.11408."""

import math

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Apart, Blend, Clip, EachSource, Likelihood
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.schedules import varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithExpert

PAPER = Paper(
    title="On-Policy RL Meets Off-Policy Experts: Harmonizing Supervised Fine-Tuning and "
    "Reinforcement Learning via Dynamic Weighting",
    use="Replace SFT followed by RL by one stage that moves from the one to the other.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class Decay:
    """From `peak` to `valley` along half a cosine over a `share` of the run; then `valley`."""

    peak: float
    valley: float
    share: float

    def value(self, progress: float) -> float:
        """The number when so much of the run is done."""
        angle = math.pi * min(1.0, progress / self.share)
        return self.valley + (self.peak - self.valley) * (1 + math.cos(angle)) / 2


def chord_mu(
    group: int = 8, peak: float = 0.9, valley: float = 0.05, share: float = 1.0, clip: float = 0.2
) -> Method:
    """loss = (1 - mu) GRPO + mu SFT, mu from `peak` to `valley` over `share` of the run.

    GRPO of own rollouts, -log pi of demonstrations, each a mean over its own tokens.
    """
    # 0.9 to 0.05 over 200 steps in the examples of ms-swift, which has it from the authors; how
    # much of a run that is, is for `share` to say, and 1.0 our choice. The authors' code
    # (Trinity-RFT) can also warm mu up from 0.
    mu = Decay(peak, valley, share)
    return Method(
        sample=WithExpert(Independent(group)),
        credit=Apart(chain(Center(), ScaleByStd())),
        loss=Blend(varying(mu), Clip(clip, clip), Likelihood()),
        weigh=EachSource(token_mean),
    )
