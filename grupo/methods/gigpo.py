"""GiGPO: steps taken in the same state are compared, too. Feng et al., 2025, arXiv:2505.10978."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.turn_table import (
    center_by_label,
    combine_labels,
    turn_mask,
    turn_returns,
    turn_states,
    turns_to_tokens,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gigpo(
    group_size: PositiveInt = 8,
    gamma: Fraction = 0.95,
    step_coef: NonNegative = 1.0,
    kl_coef: NonNegative = 0.01,
) -> Method:
    """A = (r - mean r) + `step_coef` (R_t - mean R in the same state); PPO's clip and k3.

    The environment pays every reward at an action, the last one too: r is the sum of what it pays.

    Args:
        group_size: rollouts per task.
        gamma: discount per turn of the return R_t.
        step_coef: weight of the comparison of turns taken in the same state.
        kl_coef: weight of k3, the estimate of the KL divergence from the reference policy.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), AddAnchorStateAdvantage(gamma, step_coef)),
        loss=Clip(0.2, 0.2) + kl_coef * KL(),
        aggregation=token_mean,
    )


@component
class AddAnchorStateAdvantage:
    """x + `step_coef` (R_t - mean of R over the turns taken in the same state of the same task).

    R_t = sum over k >= t of gamma^(k - t) r_k; a state met once adds nothing (eq. 5 to 8).
    """

    gamma: Fraction
    step_coef: NumberOrSchedule

    # the reward of each step and the state in which it was taken
    requires = Requires(signals=("step/reward", "step/state"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        state = turn_states(batch)
        anchor = combine_labels(batch.group[:, None].expand_as(state), state)
        A = center_by_label(turn_returns(batch, self.gamma), anchor, turn_mask(batch))
        return broadcast_to_tokens(x, batch) + self.step_coef * turns_to_tokens(A, batch)


PAPER = Paper(
    title="Group-in-Group Policy Optimization for LLM Agent Training",
    use="Agents of many turns whose environment comes back to the same states.",
    tags=("agents", "process-reward", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("gigpo",),
    source=Source(
        "code",
        "eq. 3 to 8 of the paper; verl-agent, gigpo/core_gigpo.py and "
        "examples/gigpo_trainer/run_alfworld.sh, in a public fork",
    ),
    plan=(
        "run_alfworld.sh: minibatches of 256 turns, so their number follows the length of the "
        "episodes; minibatches split groups here: one update per step"
    ),
    missing=(
        (
            "Anchor states that are alike by similarity: states are alike when their labels are "
            "equal."
        ),
        "The penalty of 0.1 for invalid actions, which belongs to the environment.",
        "The dual clip of 3 and the entropy bonus of 0.001 of the fork's configuration.",
    ),
    deviations=(
        (
            "F_norm = 1, the default of the code and of its scripts for WebShop and Sokoban; those "
            "for ALFWorld and search also divide both terms by the group's standard deviation."
        ),
        (
            "The mean of r runs over rollouts, as in the paper; in the release over steps, so that "
            "long rollouts weigh more."
        ),
        (
            "The mean is over the tokens of the batch, in the release over those of 32 turns of a "
            "device at a time."
        ),
        "The release fills a batch with copies of random turns until its devices share it evenly"
        " (adjust_batch).",
    ),
    audit=(
        "estimators, discount, KL weight, group and modes compared with core_gigpo.py and the "
        "scripts in a public fork of verl-agent"
    ),
    shown=("docs/claims.md#turns",),
)
