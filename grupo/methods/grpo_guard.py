"""GRPO-Guard: ratios of denoising steps on one scale. Wang et al., 2025, arXiv:2510.22319."""

import torch

from grupo import ratios
from grupo.batch import Batch, PerAction, Signals
from grupo.losses import Loss
from grupo.method import Method
from grupo.paper import Paper
from grupo.piece import piece
from grupo.sampling import Independent

PAPER = Paper(
    title="GRPO-Guard: Mitigating Implicit Over-Optimization in Flow Matching via Regulated "
    "Clipping",
    use="A flow model's reward rises while its images get worse: good steps never reach the clip.",
    checked=("golden", "laws"),
    catalogue=("grpo-guard",),
)


@piece
class RegulatedClip(Loss):
    """PPO's clip of exp(s (log R + KL)), over dt: s a step's noise, KL that of its new mean to old.

    log R of Gaussians of equal noise has mean -KL and a scale of 1 / s; s (log R + KL) is the mean
    of noise x shift, centred and comparable at all steps.
    """

    clip: float

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reverse_kl@old", "mark/std", "mark/dt"})

    @property
    def live(self) -> frozenset[str]:
        return frozenset({"reverse_kl@old"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s, dt, A = batch.seen["mark/std"], batch.seen["mark/dt"], batch.advantage
        unbiased = ratios.token_log_ratio(pi, batch) + pi["reverse_kl@old"]
        r = (s * unbiased).masked_fill(~batch.mask, 0.0).exp()
        return -torch.min(r * A, r.clamp(1 - self.clip, 1 + self.clip) * A) / dt.clamp(min=1e-3)


def grpo_guard(group: int = 24, clip: float = 2e-6) -> Method:
    """-min(R' A, clip(R', 1 - `clip`, 1 + `clip`) A) / dt, log R' = s (log R + KL(pi, old)).

    An action is a denoising step; its log-probability and KL are means over latent dimensions. The
    policy says KL(pi, old) of each step, and "mark/std" and "mark/dt" are its noise s and length.
    """
    # Eq. 8 and 12 as a third party's tests pin them, with beta_t = 1, the weight for Flow-GRPO's
    # noise; DanceGRPO's has 1 + eta^2 (1 - t) / (2 t). R' is s times closer to 1 than R, so clip is
    # tiny. clip and group are from memory; the floor of dt is our choice.
    return Method(sample=Independent(group), loss=RegulatedClip(clip))
