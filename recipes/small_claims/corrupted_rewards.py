"""Rewards that are wrong on purpose, on tasks that the policy can do and on tasks that it cannot.

Writes the table of `docs/small_claims.md`: pass@8 of the untrained policy is about 0.9 on the
first kind of tasks and about 0.05 on the second.
"""

from collections.abc import Sequence

import torch

from grupo.algo.advantages import Center, NegativeSamples, PositiveSamples, ScaleByStd, chain
from grupo.algo.advantages.combinators import AdvantageEstimator
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import KeyPositions
from grupo.evidence.claims.environments.key_positions import FORMAT_ITEM
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.rewarded import (
    RewardedArm,
    ScoredBefore,
    tabular_correct,
    train_rewarded,
)
from grupo.method import Method
from grupo.rewards import InsideTag, Inverted, MeanLogProb, RandomReward, TagFormat, WhereFormatted
from grupo.rewards.base import FunctionReward, Reward
from grupo.rewards.majority_vote import MajorityVote
from grupo.rollouts.samplers import GroupSampler

SEEDS = 8
LENGTH = 4


def setting(name: str, key_logit: float) -> Setting:
    """Answers of four items: one or two of the first three decide, the last one is the format."""
    env = KeyPositions(num_tasks=16, length=LENGTH, max_keys=2, key_logit=key_logit)
    return Setting(name, "", env, steps=100, learning_rate=0.05, updates=Updates(minibatches=2))


SETTINGS = {"aligned": setting("aligned", 1.8), "not aligned": setting("not aligned", -2.4)}


def as_text(task: Task, items: Sequence[int]) -> str:
    """The answer in tags; its last item is a tag that closes them only where it is the format."""
    *answer, last = items
    end = "</answer>" if last == FORMAT_ITEM else "</anwser>"
    return f"<think>…</think><answer>{' '.join(map(str, answer))}{end}"


TRUTH = FunctionReward(tabular_correct)
ANSWER = InsideTag("answer")


def method(reward: Reward, *sign: AdvantageEstimator) -> Method:
    """DAPO's loss on groups of 16 whose rewards differ, without a KL penalty."""
    env = SingleTurn((RewardTerm("reward", reward),))
    return Method(
        sampler=GroupSampler(16),
        filter=ScoredBefore(keep_nonzero_std, env, as_text),
        advantage=chain(Center(), ScaleByStd(), *sign),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
    )


ARMS = {
    "correct": method(WhereFormatted(TRUTH, TagFormat())),
    "correct, positive samples": method(WhereFormatted(TRUTH, TagFormat()), PositiveSamples()),
    "correct, negative samples": method(WhereFormatted(TRUTH, TagFormat()), NegativeSamples()),
    "random": method(WhereFormatted(RandomReward(), TagFormat())),
    "incorrect": method(WhereFormatted(Inverted(TRUTH), TagFormat())),
    "format": method(TagFormat()),
    "majority": method(WhereFormatted(MajorityVote(ANSWER), TagFormat())),
    "entropy": method(MeanLogProb()),
}


def main() -> None:
    """Train all arms on both kinds of tasks and print a table for each."""
    torch.set_num_threads(1)
    for name, conditions in SETTINGS.items():
        runs = {
            arm: [
                train_rewarded(conditions, RewardedArm(arm, built=built), seed)
                for seed in range(SEEDS)
            ]
            for arm, built in ARMS.items()
        }
        before = [
            {key: run[f"start/{key}"] for key in ("success", "pass_k")} for run in runs["correct"]
        ]
        shown = {"untrained": before, **runs}
        print(f"{name}\n{paired_table(shown, ['success', 'pass_k'], 'untrained')}")


if __name__ == "__main__":
    main()
