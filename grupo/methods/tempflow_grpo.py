"""TempFlow-GRPO: one noisy step at a time, by its noise. He et al., 2025, arXiv:2508.04324."""

from grupo.algo.advantages import ByPart, Center, Clipped, Regrouped, ScaleByStd, chain
from grupo.algo.advantages.token_table import placed
from grupo.algo.aggregation import Weigh, sequence_mean
from grupo.algo.losses import Clip, ReverseKL
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import DeviateOnce

PAPER = Paper(
    title="TempFlow-GRPO: When Timing Matters for GRPO in Flow Models",
    use="Early steps decide what is drawn, late ones little: each is to be credited for itself.",
    checked=("golden", "laws", "run"),
    catalogue=("tempflow-grpo",),
)


@piece
class ByNoise:
    """`weigh` times the noise of a step, s / mean(s) over the actions of its group."""

    weigh: Weigh = sequence_mean
    needs = frozenset({"mark/std"})

    def __call__(self, batch: Batch) -> PerAction:
        s = batch.seen["mark/std"][batch.mask]
        group = batch.row_group[:, None].expand_as(batch.mask)[batch.mask]
        return self.weigh(batch) * placed(s / group_ops.mean(s, group).clamp(min=1e-12), batch)


def tempflow_grpo(
    branches: int = 8,
    at: tuple[int, ...] = (),
    clip: float = 1e-4,
    kl: float = 0.04,
    bound: float = 5.0,
) -> Method:
    """A = (r - mean(r)) / std(r) over images that share all but the noise of one step.

    One image is drawn without noise; from each step in `at`, all if empty, `branches` others leave
    it by that step alone, drawn with noise s = sigma sqrt(dt). loss = mean over them of
    s / mean(s) (-min(R A, clip(R, 1 - `clip`, 1 + `clip`) A) + `kl` KL(pi, ref)), R = pi / old.
    """
    # Eq. 5 and 8 as a third party has them: the mean over steps makes the mean weight 1, where the
    # authors' scripts have a constant. Numbers are Flow-GRPO's; 8 branches are our choice. That the
    # KL is weighted too is our reading, and that one noise begins all images of a prompt: elsewhere
    # several do, and only those of one are compared.
    loss = Clip(clip, clip)
    within = chain(Center(), ScaleByStd(), Clipped(-bound, bound))
    return Method(
        sample=DeviateOnce(branches, at),
        credit=Regrouped(within, ByPart("place")),
        loss=loss + kl * ReverseKL(),
        weigh=ByNoise(),
    )
