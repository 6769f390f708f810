"""IGPO: turns are paid the gain in the answer's likelihood. Wang et al., 2025, arXiv:2510.14967."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import discounted_sum, shift_left
from grupo.algo.advantages.turn_table import PerTurn, turn_mask, turn_states, turns_to_tokens
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief


def igpo(
    group_size: PositiveInt = 16,
    gamma: Fraction = 1.0,
    kl_coef: NonNegative = 0.001,
    answer_prefix: str = "<answer>",
) -> Method:
    """A_t = sum of z(g) over this and later turns, g the gain of exp(mean log pi(answer)), then r.

    A step has 16 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 16).
        gamma: discount per turn (paper: 1.0).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.001).
        answer_prefix: text that is put before the reference answer.
    """
    return Method(
        sampler=WithAnswerBelief(GroupSampler(group_size), answer_prefix),
        advantage=InformationGainReturn(gamma),
        loss=Clip(0.2, 0.2) + kl_coef * KL(),
        updates=Updates(minibatches=16),
    )


def information_gains(x: Tensor, batch: Batch) -> PerTurn:
    """b_(t+1) - b_t before a rollout's last turn, and x in it; 0 where there is no turn."""
    b = turn_states(batch, "step/belief").clamp(min=0)
    exists = turn_mask(batch)
    is_not_last = shift_left(discounted_sum(exists.double(), 1.0)) > 0
    return torch.where(is_not_last, shift_left(b) - b, x[:, None].to(b)) * exists


def unscaled(g: Tensor, group: Tensor) -> Tensor:
    """The gains unchanged."""
    return g


@component
class InformationGainReturn:
    """D_t = sum over k >= t of gamma^(k - t) A_k, with A = scale_fn(information_gains) in the
    group.

    Args:
        gamma: discount per turn.
        scale_fn: scales the gains of a group, by default to z-scores.
    """

    gamma: Fraction
    scale_fn: Callable[[Tensor, Tensor], Tensor] = group_ops.zscore

    requires = Requires(signals=("step/belief",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        g = information_gains(x, batch)
        exists = turn_mask(batch)
        A = self.scale_fn(g[exists], batch.group[:, None].expand_as(exists)[exists])
        return turns_to_tokens(discounted_sum(g.masked_scatter(exists, A), self.gamma), batch)


PAPER = Paper(
    title="Information Gain-based Policy Optimization: A Simple and Effective Approach for"
    " Multi-Turn LLM Agents",
    use="Search agents of many turns, with reference answers as text.",
    tags=("agents", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("igpo",),
    source=Source(
        "code",
        "GuoqingWang1/IGPO: policy_optimization.sh, verl/trainer/ppo/core_algos.py; the "
        "z-scores of the paper are from memory",
    ),
    plan=(
        "policy_optimization.sh: 32 prompts with 16 rollouts; its minibatch of 32 is not "
        "multiplied by the rollouts (rollout.n is 1), so 16 updates"
    ),
    missing=(
        "The reward of an answer is left to the environment: the F1 of its words, and -2 without "
        "correct tags.",
        "The entropy bonus of 0.001, the framework's default.",
        "The dual clip of 3 of the release.",
    ),
    deviations=(
        (
            "Gains are z-scores of the group before they are summed, the paper's form as "
            "remembered. The released code subtracts the group's mean from the sums, position "
            "by position: chain(InformationGainReturn(gamma, unscaled), CenterTurns()) is the "
            "form by turn."
        ),
        "The mean is over answers, as GRPO's: the release's is over tokens, verl's default.",
        "Before the reference answer stands answer_prefix alone; the release puts a sentence "
        "before it that ends the thinking.",
    ),
    audit=(
        "constants and plan compared with policy_optimization.sh and ppo_trainer.yaml, "
        "returns with compute_grpo_outcome_advantage of the fork; beliefs with the "
        "catalogue's row"
    ),
)
