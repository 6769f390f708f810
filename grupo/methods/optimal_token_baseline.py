"""OTB: each token has the minimum-variance baseline. Li et al., 2026, arXiv:2602.07078."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import discounted_sum, from_token_table, to_token_table
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def optimal_token_baseline(group_size: PositiveInt = 4) -> Method:
    """A_t = r - B_t with the optimal baseline of each position.

    loss = mean over answers of sum over tokens of -A_t log pi. The name is verl's; the paper's is
    OTB.

    Args:
        group_size: rollouts per task (the paper matches 32 with 4; verl's example: 8).
    """
    # Tool output has no position, as in the paper's multi-turn form.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SubtractTokenBaseline(),
        loss=Reinforce(),
        aggregation=token_sum,
    )


def unit_weight(pi: Signals, batch: Batch) -> Tensor:
    """1 for every action, (N, T)."""
    return torch.ones_like(batch.old_logp)


@component
class RewardToGo:
    """R_t = r_t + gamma R_(t+1) over the actions of a rollout, (N, T), r the step rewards.

    Args:
        gamma: discount per action.
        step_value: name of the signal with the reward of each action.
    """

    gamma: Fraction = 1.0
    step_value: str = "step/reward"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(self.step_value,))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        rewards = to_token_table(batch.signals[self.step_value], batch)
        return from_token_table(discounted_sum(rewards, self.gamma), batch)


@component
class SubtractTokenBaseline:
    """r - B_t, B_t = sum_j W_jt r_j / sum_j W_jt over rollouts of the group with a t-th action.

    W_t = sum_(s <= t) c_s^2 (1 - 2 pi(a_s) + sum_v pi(v)^2): the squared norm of the gradient of
    c log pi with respect to the logits, up to t. r is the reward of the rollout, or the number of
    each action of an estimator before it, such as `RewardToGo()`. The longest rollout is its own
    baseline at its end and gets 0, as does a lone rollout.

    Args:
        eps: added to the denominator.
        weight: c, (N, T), such as a truncated ratio to the inference engine.
        min_rollouts: B_t is 0 where fewer rollouts of the group have a t-th action. With 2 the end
            of the longest rollout, and a lone one, keep their reward (verl's handle_zero_tail).
    """

    eps: NumberOrSchedule = 1e-8
    weight: Callable[[Signals, Batch], Tensor] = unit_weight
    min_rollouts: PositiveInt = 1

    # sum_v pi(v)^2 when sampled
    requires = Requires(signals=("collision",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        norm = 1 - 2 * batch.old_logp.exp() + batch.signals["collision"]
        norm = norm * self.weight(Signals(logp=batch.old_logp), batch) ** 2
        has_action = to_token_table(batch.mask.to(x), batch)
        W = to_token_table(norm, batch).cumsum(1) * has_action
        r = to_token_table(broadcast_to_tokens(x, batch).to(W), batch)
        B = _group_sums(W * r, batch) / (_group_sums(W, batch) + self.eps)
        is_enough = _group_sums(has_action, batch) >= self.min_rollouts
        return from_token_table(r - B * is_enough, batch)


def _group_sums(table: Tensor, batch: Batch) -> Tensor:
    """Sums over each group."""
    groups, index = batch.group.unique(return_inverse=True)
    return table.new_zeros(len(groups), table.shape[1]).index_add(0, index, table)[index]


PAPER = Paper(
    title="The Optimal Token Baseline: Variance Reduction for Long-Horizon LLM-RL",
    use="Rollouts are long and groups small, and gradient noise makes the run fail.",
    tags=("advantage", "process-reward"),
    verl="adv_estimator='optimal_token_baseline' (whose handle_zero_tail is "
    "SubtractTokenBaseline(min_rollouts=2))",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "verl: docs/algo/otb.md, compute_optimal_token_baseline_advantage and "
        "examples/otb_trainer/run_qwen3_8b_fsdp.sh (in January 2026 run_qwen2_5-7b.sh)",
    ),
    plan=(
        "one update per step: run_qwen3_8b_fsdp.sh has 128 prompts per step and minibatches of 128"
    ),
    deviations=(
        "The reward of the rollout stands for the reward to go, which chain(RewardToGo(), "
        "SubtractTokenBaseline()) has; verl's squared importance weight is "
        "SubtractTokenBaseline(weight=ImportanceWeight(...)).",
        "The longest rollout is its own baseline at its end, as in verl of January 2026, and a "
        "lone rollout everywhere, so that A = 0. Other versions of verl have handle_zero_tail on, "
        "which makes the baseline 0 there: SubtractTokenBaseline(min_rollouts=2).",
        "The loss is the mean over answers of sums over tokens: verl's example leaves the default "
        "mean over tokens.",
        "There is no clip, since the baseline is optimal for this gradient: verl's example clips.",
    ),
    audit=(
        "weights, baseline and plan compared with docs/algo/otb.md and the example; the "
        "paper could not be opened"
    ),
    shown=("docs/claims.md#tokens",),
)
