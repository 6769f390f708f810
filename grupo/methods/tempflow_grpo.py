"""TempFlow-GRPO: branches at one noisy denoising step. He et al., 2025, arXiv:2508.04324."""

from grupo.algo.advantages import ByRewardTerm, Center, ClampAdvantage, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.token_table import scatter_tokens
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.losses import Clip, ReverseKL
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NonNegativeInt, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import SingleStepBranching

PAPER = Paper(
    title="TempFlow-GRPO: When Timing Matters for GRPO in Flow Models",
    use="Early denoising steps decide the image, late ones little: each should have its own "
    "credit.",
    tags=("diffusion", "tree", "multimodal", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("tempflow-grpo",),
)


@component
class NoiseWeighted:
    """`aggregation` times the noise of a step, s / mean(s) over the actions of its group.

    Args:
        aggregation: aggregation that is weighted.
    """

    aggregation: Aggregation = sequence_mean

    requires = Requires(signals=("step/std",))

    def __call__(self, batch: Batch) -> PerAction:
        s = batch.signals["step/std"][batch.mask]
        group = batch.row_group[:, None].expand_as(batch.mask)[batch.mask]
        return self.aggregation(batch) * scatter_tokens(
            s / group_ops.mean(s, group).clamp(min=1e-12), batch
        )


def tempflow_grpo(
    branches_per_step: PositiveInt = 8,
    branch_steps: tuple[NonNegativeInt, ...] = (),
    clip_eps: NonNegative = 1e-4,
    kl_coef: NonNegative = 0.04,
    max_advantage: NonNegative = 5.0,
) -> Method:
    """A = (r - mean(r)) / std(r) over images that share all but the noise of one step.

    One image is generated without noise; from each of branch_steps, branches_per_step others leave
    it by that step alone, sampled with noise s = sigma sqrt(dt). loss = mean over them of
      s / mean(s) (-min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef KL(pi, ref))
    with R = pi / old.

    Args:
        branches_per_step: images per branching step (our choice).
        branch_steps: steps at which images branch; all if empty.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (Flow-GRPO's value).
        kl_coef: weight of the KL divergence from the reference policy (Flow-GRPO's value).
        max_advantage: advantages are clamped to [-max_advantage, max_advantage] (Flow-GRPO's
            value).
    """
    # Eq. 5 and 8 as a third party has them: the mean over steps makes the mean weight 1, where the
    # authors' scripts have a constant. That the KL is weighted too is our reading, and that one
    # noise starts all images of a prompt: elsewhere several do, and only images of the same noise
    # are compared.
    estimator = chain(Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage))
    return Method(
        sampler=SingleStepBranching(branches_per_step, branch_steps),
        advantage=GroupedBy(estimator, ByRewardTerm("branch_step")),
        loss=Clip(clip_eps, clip_eps) + kl_coef * ReverseKL(),
        aggregation=NoiseWeighted(),
    )
