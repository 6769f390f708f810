"""HBPO: rollouts explore under several token budgets. Lyu et al., 2025, arXiv:2507.15844."""

import math

import torch
from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupPart, SplitGroup
from grupo.util.errors import ConfigError


def hbpo(
    group_size: PositiveInt = 16,
    max_length: PositiveInt = 4096,
    reward_scale: Positive = 4.0,
    length_coef: NonNegative = 1 / 4096,
    budgets: tuple[PositiveInt, ...] = (512, 1024, 2048, 2560),
    prefix: str = "<think> I will answer the question with {budget} tokens",
) -> Method:
    """A = a budget's shortfall from its full reward + (R - mean) / std of the group.

    loss = mean over all tokens of -min(r A, clip(r, 0.8, 1.28) A), r the ratio pi / old.
    Equal parts of a group begin with the prefix of one budget each. Its tokens are trained on and
    count towards the length. Four updates per step.

    Args:
        group_size: rollouts per task, a multiple of the number of budgets (authors' script: 16).
        max_length: length limit of an answer, in tokens.
        reward_scale: largest reward (beta in the paper).
        length_coef: penalty per token over the budget (alpha in the paper).
        budgets: token budgets of the parts of a group, at most max_length.
        prefix: forced beginning of an answer, with the field {budget}.
    """
    if max(budgets, default=0) > max_length:
        raise ConfigError(f"hbpo.budgets: {budgets}. Allowed: at most max_length, {max_length}.")
    if "{budget}" not in prefix:
        raise ConfigError(f"hbpo.prefix: {prefix!r}. Allowed: a text with the field {{budget}}.")
    parts = tuple(GroupPart(float(n), prefix.replace("{budget}", str(n))) for n in budgets)
    return Method(
        sampler=SplitGroup(group_size, parts=parts, reward_term="budget"),
        advantage=BudgetReward(max_length, reward_scale, length_coef),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


ZSCORE = chain(Center(), ScaleByStd())


@component
class BudgetReward:
    """mean(R | same budget b) - f2(b) + (R - mean(R)) / std(R), f2(b) = reward_scale cos(pi b / 2
    M).

    M is max_length. R of a correct answer of n tokens is f2(b) up to n = b, then f2(n) -
    length_coef (n - b) up to M; R is 0 beyond M and for a wrong answer.

    Args:
        max_length: length limit of an answer, in tokens.
        reward_scale: largest reward (beta in the paper).
        length_coef: penalty per token over the budget (alpha in the paper).
    """

    max_length: PositiveInt
    reward_scale: NonNegative
    length_coef: NumberOrSchedule

    requires = Requires(reward_terms=("correct", "budget"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = self.reward(batch)
        full = self._cosine(batch.reward_terms["budget"])
        return group_ops.mean(R, ByRewardTerm("budget")(batch)) - full + ZSCORE(R, batch)

    def reward(self, batch: Batch) -> Tensor:
        """R of each rollout."""
        b = batch.reward_terms["budget"]
        n = batch.lengths
        R = self._cosine(torch.max(n, b)) - self.length_coef * (n - b).clamp(min=0)
        return torch.where((batch.reward_terms["correct"] > 0.5) & (n <= self.max_length), R, 0.0)

    def _cosine(self, n: Tensor) -> Tensor:
        return self.reward_scale * (math.pi * n / (2 * self.max_length)).cos()


PAPER = Paper(
    title="Hierarchical Budget Policy Optimization for Adaptive Reasoning",
    use="Prompts can state a token budget; the policy should learn how much each task needs.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference"),
    catalogue=("hbpo",),
    source=Source(
        "code",
        "ZJU-REAL/HBPO: examples/grpo_trainer/run_qwen2-7b_deepscale.sh, rllm/rewards/"
        "math_reward.py, verl/workers/rollout/vllm_rollout/vllm_rollout_spmd-hierarchical.py;"
        " equations of paper.txt there",
    ),
    plan="run_qwen2-7b_deepscale.sh: batch of 64 prompts, minibatches of 16: 4 updates per step.",
    missing=("The dual clip of 3 of the release (clip_ratio_c of ppo_trainer.yaml).",),
    deviations=(
        "R is 0 for every wrong answer, as in the paper; the released code gives -1 where </think>"
        " or the answer is missing.",
        "As written the run script loads vllm_rollout_spmd.py, which forces no prefix: the file"
        " with the prefixes has to replace it.",
        "The first term is added once, as in the paper; the released code adds it twice.",
        "R is f1(n, b) only beyond the budget, as in the paper; the released code takes"
        " min(f1(n, b), f2(b)), which is less for very short answers.",
        "The mean is over the tokens of a minibatch, in the release of a micro-batch.",
    ),
    audit="Formula, constants, token mean (loss_agg_mode of ppo_trainer.yaml, which the script"
    " leaves), forced prefixes and update plan compared with the repository at 5c8991d; R and"
    " the advantage agree with its code on eight rollouts.",
)
