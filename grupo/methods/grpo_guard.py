"""GRPO-Guard: ratios of denoising steps on one scale. Wang et al., 2025, arXiv:2510.22319."""

from grupo.algo import ratios
from grupo.algo.aggregation import Weigh, sequence_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Passes
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="GRPO-Guard: Mitigating Implicit Over-Optimization in Flow Matching via Regulated "
    "Clipping",
    use="A flow model's reward rises while its images get worse: good steps never reach the clip.",
    checked=("golden", "laws", "run"),
    catalogue=("grpo-guard",),
)


@piece
class Regulated:
    """exp(s (log R + KL)), s a step's noise, KL that of its new mean to old.

    log R has mean -KL and a scale of 1 / s; this is centred and comparable at all steps.
    """

    needs = frozenset({"reverse_kl@old", "mark/std"})
    live = frozenset({"reverse_kl@old"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        unbiased = ratios.token_log_ratio(pi, batch) + pi["reverse_kl@old"]
        return (batch.seen["mark/std"] * unbiased).masked_fill(~batch.mask, 0.0).exp()


@piece
class OverLength:
    """`weigh` over the length of a step, dt."""

    weigh: Weigh = sequence_mean
    needs = frozenset({"mark/dt"})

    def __call__(self, batch: Batch) -> PerAction:
        return self.weigh(batch) / batch.seen["mark/dt"].clamp(min=1e-3)


def grpo_guard(group: int = 24, clip: float = 2e-6, updates: int = 2) -> Method:
    """-min(R' A, clip(R', 1 - `clip`, 1 + `clip`) A) / dt, log R' = s (log R + KL(pi, old)).

    An action is a denoising step; its log-probability and KL are means over latent dimensions. The
    policy says KL(pi, old) of each step, and "mark/std" and "mark/dt" are its noise s and length.
    An update is on 1 of `updates` parts of the prompts.
    """
    # Eq. 8 and 12 as a third party's tests pin them, with beta_t = 1, the weight for Flow-GRPO's
    # noise; DanceGRPO's has 1 + eta^2 (1 - t) / (2 t). R' is s times closer to 1 than R, so clip is
    # tiny: numbers are of a third party's runs on SD 3.5, others have clips of 4e-6 to 2e-5. Of one
    # update a step no R' leaves 1. The floor of dt is our choice.
    loss, plan = Clip(clip, clip, Regulated()), Passes(minibatches=updates)
    return Method(sample=Independent(group), loss=loss, weigh=OverLength(), plan=plan)
