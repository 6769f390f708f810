"""RLSP: rewards search effort and penalises short answers. Ye et al., 2025, arXiv:2502.06773."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rlsp(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    short_penalty: NonNegative = 1000.0,
    outcome_weight: Fraction = 0.8,
    kl_coef: NonNegative = 0.05,
) -> Method:
    """A = (R - mean(R)) / std(R), R = w (r - short_penalty / n) + (1 - w) e, w = outcome_weight.

    r: 1 correct, 0 wrong, -1/2 without an answer. Reward terms: "effort", e, 1/2 where its judge
    failed.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        short_penalty: penalty of an answer of one token; should be well below the length of answers
            (authors' code: 1000.0).
        outcome_weight: weight of the outcome against the effort (authors' code: 0.8).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.05).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(SearchReward(short_penalty, outcome_weight), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(minibatches=4),
    )


@component
class SearchReward:
    """w (x - short_penalty / n) + (1 - w) e, w = outcome_weight, n the length, e the effort in [0,
    1].

    Args:
        short_penalty: penalty of an answer of one token.
        outcome_weight: weight of the outcome against the effort.
        reward_term: reward term of the effort, scored without regard to the answer.
    """

    short_penalty: NumberOrSchedule = 1000.0
    outcome_weight: Fraction = 0.8
    reward_term: str = "effort"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        outcome = x - self.short_penalty / batch.lengths.clamp(min=1)
        return (
            self.outcome_weight * outcome
            + (1 - self.outcome_weight) * batch.reward_terms[self.reward_term]
        )


PAPER = Paper(
    title="On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
    use="A model answers at once where it should search, check and backtrack.",
    tags=("reward", "exploration", "length"),
    checked=("golden", "properties", "reference"),
    catalogue=("rlsp",),
    source=Source(
        "code",
        (
            "GuanghaoYe/Emergence-of-Thinking, openrlhf/cli/orm_server_efficient.py, "
            "gpt_reward.py and train_ppo_llama_ray_8B_rm_multi.sh"
        ),
    ),
    plan=(
        "train_ppo_llama_ray_8B_rm_multi.sh: rollout batch 512, train batch 128: 4 updates per step"
    ),
    missing=(
        "The SFT stage on demonstrations of search.",
        (
            "The critic, its first 4 steps alone (freezing_actor_steps), and the normalisation of "
            "rewards."
        ),
        "The clamp of the reward to [-10, 10] (reward_clip_range, on by default), and the reward "
        "of 0 where its computation fails.",
        "The temperature of 0.7 of the script.",
    ),
    deviations=(
        (
            "The release trains by PPO with one rollout and the KL in the reward; here groups and "
            "a KL loss."
        ),
        "Its n is a quarter of the characters before the answer, of all without one, here tokens.",
        "Rows count equally; with the packed samples of the script the release averages over the"
        " tokens of a micro-batch of 8 answers.",
        "The scripts for 8B run without the effort, with or without the penalty of 1000; the one"
        " for 32B has both (README.md).",
    ),
    audit=(
        "KL weight and batch sizes compared with the script, the reward with "
        "orm_server_efficient.py and a reference implementation in the test"
    ),
)
