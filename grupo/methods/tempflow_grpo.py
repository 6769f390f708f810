"""TempFlow-GRPO: one noisy step at a time, by its noise. He et al., 2025, arXiv:2508.04324."""

from grupo.algo.advantages import ByRewardTerm, Center, ClampAdvantage, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.token_table import scatter_tokens
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.losses import Clip, ReverseKL
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import SingleStepBranching

PAPER = Paper(
    title="TempFlow-GRPO: When Timing Matters for GRPO in Flow Models",
    use="Early steps decide what is drawn, late ones little: each is to be credited for itself.",
    checked=("golden", "laws", "run"),
    catalogue=("tempflow-grpo",),
)


@component
class NoiseWeighted:
    """`aggregation` times the noise of a step, s / mean(s) over the actions of its group."""

    aggregation: Aggregation = sequence_mean
    required_signals = frozenset({"step/std"})

    def __call__(self, batch: Batch) -> PerAction:
        s = batch.signals["step/std"][batch.mask]
        group = batch.row_group[:, None].expand_as(batch.mask)[batch.mask]
        return self.aggregation(batch) * scatter_tokens(
            s / group_ops.mean(s, group).clamp(min=1e-12), batch
        )


def tempflow_grpo(
    branches_per_step: int = 8,
    branch_steps: tuple[int, ...] = (),
    clip_eps: float = 1e-4,
    kl_coef: float = 0.04,
    max_advantage: float = 5.0,
) -> Method:
    """A = (r - mean(r)) / std(r) over images that share all but the noise of one step.

    One image is drawn without noise; from each step in `branch_steps`, all if empty, `branches_per_step` others leave
    it by that step alone, drawn with noise s = sigma sqrt(dt). loss = mean over them of
    s / mean(s) (-min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A) + `kl_coef` KL(pi, ref)), R = pi / old.
    """
    # Eq. 5 and 8 as a third party has them: the mean over steps makes the mean weight 1, where the
    # authors' scripts have a constant. Numbers are Flow-GRPO's; 8 branches are our choice. That the
    # KL is weighted too is our reading, and that one noise begins all images of a prompt: elsewhere
    # several do, and only those of one are compared.
    loss = Clip(clip_eps, clip_eps)
    within = chain(Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage))
    return Method(
        sampler=SingleStepBranching(branches_per_step, branch_steps),
        advantage=GroupedBy(within, ByRewardTerm("branch_step")),
        loss=loss + kl_coef * ReverseKL(),
        aggregation=NoiseWeighted(),
    )
