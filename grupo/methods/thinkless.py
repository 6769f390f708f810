"""DeGRPO: a separate loss for the choice to think. Fang et al., 2025, arXiv:2505.13379."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def thinkless(
    group_size: PositiveInt = 8,
    control_coef: NonNegative = 0.001,
    thinking_reward: NonNegative = 0.5,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """loss = control_coef mean of l over first tokens + mean of l over all others; A = r - mean(r).

    l is PPO's clipped loss. Reward terms: "correct", and "think", 1 if the first token chooses to
    think. r = 1 correct without thinking, thinking_reward correct with thinking, -1 wrong or
    malformed.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        control_coef: weight of the first tokens (alpha in the paper) (authors' script: 0.001).
        thinking_reward: reward of a correct answer with thinking (authors' code: 0.5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    # In a resumed run of the release thinking_reward was 0.8.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(ShortThinkingReward(thinking_reward), Center()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=ControlTokenMean(control_coef),
        updates=Updates(minibatches=2),
    )


REWARD_TERMS = ("correct", "think")


@component
class ShortThinkingReward:
    """r = 1 if correct without thinking, thinking_reward if correct with thinking, else -1.

    The reward terms are yes above 1/2.

    Args:
        thinking_reward: reward of a correct answer with thinking.
    """

    thinking_reward: NumberOrSchedule

    requires = Requires(reward_terms=REWARD_TERMS)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct, think = (batch.reward_terms[name] > 0.5 for name in REWARD_TERMS)
        return (1 + (self.thinking_reward - 1) * think.to(x)).where(correct, -1.0)


@component
class ControlTokenMean:
    """control_coef / N for the first token of each of N rows, 1 / (their number) for all others.

    Args:
        control_coef: weight of the first tokens (alpha in the paper).
    """

    control_coef: NumberOrSchedule

    def __call__(self, batch: Batch) -> PerAction:
        control = batch.mask & (batch.mask.cumsum(1) == 1)
        others = batch.mask & ~control
        first = control.to(batch.old_logp) * self.control_coef / control.sum().clamp(min=1)
        return first + others.to(first) / others.sum().clamp(min=1)


PAPER = Paper(
    title="Thinkless: LLM Learns When to Think",
    use="The first token chooses whether to think, and long answers drown its gradient.",
    tags=("length", "aggregation"),
    checked=("golden", "properties", "reference"),
    catalogue=("thinkless-degrpo",),
    source=Source(
        "code",
        (
            "VainF/Thinkless, verl/verl/trainer/ppo/core_algos.py and "
            "scripts/rl/thinkless_1.5b_deepscaler.sh"
        ),
    ),
    plan="thinkless_1.5b_deepscaler.sh: train batch 128, minibatch 64: 2 updates per step",
    missing=(
        "The SFT stage that distils a long and a short teacher.",
        "The sampling at temperature 0.6.",
        "verl's entropy bonus of 0.001, which the script leaves on.",
    ),
    deviations=(
        "The KL is weighted like the loss; the release averages it over all tokens.",
        (
            "Both means are over a minibatch; in the release over a micro-batch of at most 32,768 "
            "tokens (use_dynamic_bsz), and the losses of micro-batches are added up."
        ),
    ),
    audit=(
        "loss, rewards, constants and batch sizes compared with compute_policy_loss and the script"
    ),
)
