"""GRPO-Guard: denoising-step ratios on one scale. Wang et al., 2025, arXiv:2510.22319."""

from grupo.algo import ratios
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_guard(
    group_size: PositiveInt = 24, clip_eps: NonNegative = 2e-6, minibatches: PositiveInt = 2
) -> Method:
    """-min(R' A, clip(R', 1 - clip_eps, 1 + clip_eps) A) / dt, log R' = s (log R + KL(pi, old)).

    An action is a denoising step; its log-probability and KL are means over latent dimensions.
    Signals: KL(pi, old) of each step, "step/std" its noise s and "step/dt" its length.

    Args:
        group_size: rollouts per task (our choice; verl-omni's script: 16).
        clip_eps: ratios R' are clipped to [1 - clip_eps, 1 + clip_eps] (verl-omni: 2e-6).
        minibatches: minibatches of a step, with one update each.
    """
    # R' is s times closer to 1 than R, so the clip is tiny: runs on SD 3.5 use 2e-6 to 2e-5.
    # With one update a step R' is always 1.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps, RegulatedRatio()),
        aggregation=DivideByStepSize(),
        updates=Updates(minibatches=minibatches),
    )


@component
class RegulatedRatio:
    """exp(s (log R + KL)), s the noise of the step, KL the divergence of its new mean from the old.

    log R has mean -KL and scale 1 / s; the result is centred and comparable at all steps.
    """

    requires = Requires(signals=("step/std",), recomputed_signals=("reverse_kl@old",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        unbiased = ratios.token_log_ratio(pi, batch) + pi["reverse_kl@old"]
        return (batch.signals["step/std"] * unbiased).masked_fill(~batch.mask, 0.0).exp()


@component
class DivideByStepSize:
    """`aggregation` divided by dt, the length of the step.

    Args:
        aggregation: aggregation that is divided.
    """

    aggregation: Aggregation = sequence_mean

    requires = Requires(signals=("step/dt",))

    def __call__(self, batch: Batch) -> PerAction:
        return self.aggregation(batch) / batch.signals["step/dt"].clamp(min=1e-3)


PAPER = Paper(
    title="GRPO-Guard: Mitigating Implicit Over-Optimization in Flow Matching via Regulated "
    "Clipping",
    use="A flow model's reward rises while its images degrade: positive steps never reach the "
    "clip.",
    tags=("diffusion", "clipping", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("grpo-guard",),
    source=Source(
        "third_party",
        "verl-omni: docs/algo/grpo_guard.md, diffusion_algos.py and the script "
        "examples/grpoguard_trainer/qwen_image/run_qwen_image_ocr_lora.sh; TeleBoost's tests of "
        "eq. 8 and 12 (the catalogue's row)",
    ),
    plan=(
        "verl-omni's script: 32 prompts per step in minibatches of 16, 2 updates, as Flow-GRPO's "
        "configurations; the paper's own number was in no source that was opened"
    ),
    missing=(
        "The weight of DanceGRPO's noise, beta_t = 1 + eta^2 (1 - t) / (2 t).",
        "Advantages clipped to +-5, as in Flow-GRPO's stack.",
        "The window of denoising steps that are trained on (sde_window_size 2, range 0 to 5).",
    ),
    deviations=(
        "beta_t = 1, the weight for Flow-GRPO's noise.",
        "dt has a floor of 1e-3, our choice.",
        "The standard deviation is that of the group, with 1e-6 added. verl-omni divides by that "
        "of the batch, with 1e-4 added (global_std, the default of its estimator).",
        "group_size is our choice, 24.",
    ),
    audit=(
        "ratio, its centring, the weight 1 / dt, the clip of 2e-6 and the plan compared with "
        "verl-omni's page and script; the authors' code could not be opened"
    ),
)
