"""Flow-GRPO: GRPO on stochastic denoising steps. Liu et al., 2025, arXiv:2505.05470."""

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, chain
from grupo.algo.losses import Clip, ReverseKL
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def flow_grpo(
    group_size: PositiveInt = 24,
    clip_eps: NonNegative = 1e-4,
    kl_coef: NonNegative = 0.04,
    max_advantage: NonNegative = 5.0,
    minibatches: PositiveInt = 2,
) -> Method:
    """GRPO whose actions are the denoising steps of an image.

    A = (r - mean(r)) / std(r) over the images of a prompt, clamped to +-max_advantage; loss = mean
    over images of mean over steps of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef KL(pi, ref)
    with R = pi / old and KL = |m - m_ref|^2 / (2 s^2), m a step's mean and s its noise. KL and log
    R are means over the dimensions of a latent.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' code: 24).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.0001).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.04 for
            OCR and GenEval, 0.01 for PickScore).
        max_advantage: advantages are clamped to [-max_advantage, max_advantage] (authors' code:
            5.0).
        minibatches: minibatches of a step, with one update each (authors' code: 2).
    """
    loss = Clip(clip_eps, clip_eps)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage)),
        loss=loss + kl_coef * ReverseKL(),
        updates=Updates(minibatches=minibatches),
    )


PAPER = Paper(
    title="Flow-GRPO: Training Flow Matching Models via Online RL",
    use="A flow-matching model generates images, and a reward model scores them.",
    tags=("diffusion", "multimodal"),
    checked=("golden", "properties", "run"),
    source=Source("code", "yifan123/flow_grpo, config/grpo.py and config/base.py"),
    plan=(
        "config/grpo.py: gradient accumulation over half of the batches of a step: 2 updates per "
        "step"
    ),
    missing=(
        "An exponential moving average of the weights (train.ema).",
        "Classifier-free guidance of 4.5, with which the scripts sample and train (guidance_scale "
        "of the policy).",
        "The scripts do not train on the last denoising step (timestep_fraction 0.99 of 10 steps).",
        (
            "The scripts drop images with advantage 0 before the update, but for as many as fill "
            "the last batches; here these count in the mean, and their KL acts."
        ),
    ),
    deviations=(
        (
            "Advantages are divided by the standard deviation of the group, as in the paper; the "
            "scripts take that of all rewards of a step."
        ),
        "The standard deviation is by n - 1 and gains 1e-6, in the scripts by n and 1e-4.",
        (
            "The KL is over the variance of the step, sigma^2 dt, as in the paper's closed form; "
            "the scripts' is over sigma^2."
        ),
        "A minibatch holds whole groups; the scripts shuffle the images of a device into them.",
    ),
    audit=(
        "group, clips, KL weight and updates compared with the SD 3.5 configurations; arithmetic "
        "with flow_grpo (848 cases with TRL and verl)"
    ),
)
