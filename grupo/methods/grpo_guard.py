"""GRPO-Guard: ratios of denoising steps on one scale. Wang et al., 2025, arXiv:2510.22319."""

from grupo.algo import ratios
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GRPO-Guard: Mitigating Implicit Over-Optimization in Flow Matching via Regulated "
    "Clipping",
    use="A flow model's reward rises while its images get worse: good steps never reach the clip.",
    checked=("golden", "laws", "run"),
    catalogue=("grpo-guard",),
)


@component
class RegulatedRatio:
    """exp(s (log R + KL)), s a step's noise, KL that of its new mean to old.

    log R has mean -KL and a scale of 1 / s; this is centred and comparable at all steps.
    """

    required_signals = frozenset({"reverse_kl@old", "step/std"})
    recomputed_signals = frozenset({"reverse_kl@old"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        unbiased = ratios.token_log_ratio(pi, batch) + pi["reverse_kl@old"]
        return (batch.signals["step/std"] * unbiased).masked_fill(~batch.mask, 0.0).exp()


@component
class DivideByStepSize:
    """`aggregation` over the length of a step, dt."""

    aggregation: Aggregation = sequence_mean
    required_signals = frozenset({"step/dt"})

    def __call__(self, batch: Batch) -> PerAction:
        return self.aggregation(batch) / batch.signals["step/dt"].clamp(min=1e-3)


def grpo_guard(group_size: int = 24, clip_eps: float = 2e-6, minibatches: int = 2) -> Method:
    """-min(R' A, clip(R', 1 - `clip`, 1 + `clip`) A) / dt, log R' = s (log R + KL(pi, old)).

    An action is a denoising step; its log-probability and KL are means over latent dimensions. The
    policy says KL(pi, old) of each step, and "step/std" and "step/dt" are its noise s and length.
    An update is on 1 of `updates` parts of the prompts.
    """
    # Eq. 8 and 12 as a third party's tests pin them, with beta_t = 1, the weight for Flow-GRPO's
    # noise; DanceGRPO's has 1 + eta^2 (1 - t) / (2 t). R' is s times closer to 1 than R, so clip is
    # tiny: numbers are of a third party's runs on SD 3.5, others have clips of 4e-6 to 2e-5. Of one
    # update a step no R' leaves 1. The floor of dt is our choice.
    loss, plan = Clip(clip_eps, clip_eps, RegulatedRatio()), Updates(minibatches=minibatches)
    return Method(
        sampler=GroupSampler(group_size), loss=loss, aggregation=DivideByStepSize(), updates=plan
    )
