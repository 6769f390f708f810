"""Single-stream PO: one rollout against its past. Xu and Ding, 2025, arXiv:2509.13232."""

from torch import Tensor

from grupo.algo.advantages import StandardiseBatch, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import UncertaintyWeighted, beta_mean
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Single-stream Policy Optimization",
    use="A second rollout of a task costs too much, and every task comes back some day.",
    verl="the recipe spo of verl-recipe; forgets by the measured change of log-probabilities",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("spo-single-stream",),
)


@component
class SubtractBetaMean:
    """r - v, v of `tracked`."""

    decay: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return (
            x - x.new_tensor([beta_mean(past, self.decay) for past in batch.history])[batch.group]
        )


def spo_single_stream(
    group_size: int = 1, decay: float = 0.875, clip_low: float = 0.2, clip_high: float = 0.28
) -> Method:
    """A = whitened r - v, r in [0, 1]; v is the mean of a Beta that each new reward sharpens."""
    # The authors' code forgets 2^(-D / 0.06), held in [0.875, 0.96], D how far log-probabilities of
    # the task's last rollout have moved: not measured here. It can also start from old rollouts.
    asked, played = UncertaintyWeighted(decay), GroupSampler(group_size)
    credit, loss = chain(SubtractBetaMean(decay), StandardiseBatch()), Clip(clip_low, clip_high)
    return Method(asked, played, advantage=credit, loss=loss, aggregation=token_mean)
