"""OTB: each token has the minimum-variance baseline. Li et al., 2026, arXiv:2602.07078."""

from torch import Tensor

from grupo.algo.advantages.token_table import from_token_table, to_token_table
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Optimal Token Baseline: Variance Reduction for Long-Horizon LLM-RL",
    use="Rollouts are long and groups small, and gradient noise makes the run fail.",
    tags=("advantage", "process-reward"),
    verl="adv_estimator='optimal_token_baseline' (baseline 0 where only the longest is left)",
    checked=("golden", "properties", "reference", "run"),
)


@component
class SubtractTokenBaseline:
    """r - B_t, B_t = sum_j W_jt r_j / sum_j W_jt over rollouts of the group with a t-th action.

    W_t = sum_(s <= t) (1 - 2 pi(a_s) + sum_v pi(v)^2): the squared norm of the gradient of log pi
    with respect to the logits, up to t. The longest rollout is its own baseline at its end and gets
    0.

    Args:
        eps: added to the denominator.
    """

    eps: Number = 1e-8

    # sum_v pi(v)^2 when sampled
    requires = Requires(signals=("collision",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        norm = 1 - 2 * batch.old_logp.exp() + batch.signals["collision"]
        W = to_token_table(norm, batch).cumsum(1) * to_token_table(batch.mask.to(x), batch)
        r = x[:, None].expand_as(W)
        B = _group_sums(W * r, batch) / (_group_sums(W, batch) + self.eps)
        return from_token_table(r - B, batch)


def _group_sums(table: Tensor, batch: Batch) -> Tensor:
    """Sums over each group."""
    groups, index = batch.group.unique(return_inverse=True)
    return table.new_zeros(len(groups), table.shape[1]).index_add(0, index, table)[index]


def optimal_token_baseline(group_size: PositiveInt = 4) -> Method:
    """A_t = r - B_t with the optimal baseline of each position.

    loss = mean over answers of sum over tokens of -A_t log pi. The name is verl's; the paper's is
    OTB.

    Args:
        group_size: rollouts per task (the paper matches 32 with 4).
    """
    # Tool output has no position, as in the paper's multi-turn form. No clip: the baseline is
    # optimal for this gradient.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SubtractTokenBaseline(),
        loss=Reinforce(),
        aggregation=token_sum,
    )
