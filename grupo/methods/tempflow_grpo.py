"""TempFlow-GRPO: branches at one noisy denoising step. He et al., 2025, arXiv:2508.04324."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ClampAdvantage, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.token_table import scatter_tokens
from grupo.algo.losses import Clip, ReverseKL
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NonNegativeInt, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import SingleStepBranching


def tempflow_grpo(
    branches_per_step: PositiveInt = 6,
    branch_steps: tuple[NonNegativeInt, ...] = (),
    clip_eps: NonNegative = 1e-4,
    kl_coef: NonNegative = 0.004,
    max_advantage: NonNegative = 5.0,
) -> Method:
    """A = (r - mean(r)) / std(r) over images that share all but the noise of one step.

    One image is generated without noise; from each of branch_steps, branches_per_step others leave
    it by that step alone, sampled with noise s = sigma sqrt(dt). loss = mean over them of
      -s / mean(s) min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef KL(pi, ref)
    with R = pi / old.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        branches_per_step: images per branching step (authors' code: 6).
        branch_steps: steps at which images branch; all if empty.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (Flow-GRPO's value).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.004, and
            0.001 for PickScore).
        max_advantage: advantages are clamped to [-max_advantage, max_advantage] (Flow-GRPO's
            value).
    """
    estimator = chain(Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage))
    return Method(
        sampler=SingleStepBranching(branches_per_step, branch_steps),
        advantage=chain(GroupedBy(estimator, ByRewardTerm("branch_step")), ScaleByNoise()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * ReverseKL(),
        updates=Updates(minibatches=2),
    )


@component
class ScaleByNoise:
    """x s / mean(s), s the noise of an action's step, its mean over the actions of the group.

    PPO's clipped loss is proportional to the advantage, so this weights the loss of each action and
    leaves the KL as it is.
    """

    requires = Requires(signals=("step/std",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        s = batch.signals["step/std"][batch.mask]
        group = batch.row_group[:, None].expand_as(batch.mask)[batch.mask]
        weight = scatter_tokens(s / group_ops.mean(s, group).clamp(min=1e-12), batch)
        return broadcast_to_tokens(x, batch) * weight.to(x)


PAPER = Paper(
    title="TempFlow-GRPO: When Timing Matters for GRPO in Flow Models",
    use="Early denoising steps decide the image, late ones little: each should have its own "
    "credit.",
    tags=("diffusion", "tree", "multimodal", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("tempflow-grpo",),
    source=Source(
        "code",
        (
            "Shredded-Pork/TempFlow-GRPO, scripts/train_sd3_pr.py, "
            "flow_grpo/diffusers_patch/sd3_sde_with_logprob_perstep.py and config/dgx.py; eq. 5 "
            "and 8 as a third party has them"
        ),
    ),
    plan=(
        "config/dgx.py: gradients of half of a step's batches are accumulated: 2 updates per step"
    ),
    missing=(
        "The std over all rewards of a step, which one configuration has (global_std).",
        "The moving average of the weights (train.ema).",
        (
            "The script drops images whose advantages are all 0 before the update; here these "
            "count in the mean, and their KL acts."
        ),
    ),
    deviations=(
        "The std is by n - 1 and gains 1e-6, in Flow-GRPO's tracker of the script by n and 1e-4.",
        "Weights have mean 1; the scripts have 2.25 s (SD3.5), 1.73 s (FLUX) and 1.53 s"
        " (Qwen-Image).",
        (
            "One noise starts all images of a prompt; there 4 do, each on its own GPU, and the 6 "
            "images that branch from one at a step are compared with one another (rewards are not "
            "gathered)."
        ),
        (
            "Images branch at every step by default; in the script at all but the last, whose "
            "noise is not trained on (timesteps[:-1])."
        ),
    ),
    audit=(
        "branches, weights, loss, KL, constants and number of updates compared with "
        "train_sd3_pr.py, its pipeline and config/dgx.py"
    ),
)
