"""Pairs of a search tree teach a small language model what the environment rewards."""

import pytest

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import SiblingPreference
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.rollouts.samplers import TreePairs
from tests.helpers.toy_claims import answers, trained, untrained

PROMPT = "Say:"


def lower_case_share(text):
    return sum(letter.islower() for letter in text) / max(1, len(text))


def lower_case(task, rollout):
    return lower_case_share(rollout.text)


@pytest.mark.slow
def test_pairs_of_siblings_raise_the_reward_of_a_language_model(tmp_path):
    model = untrained(tmp_path / "model", ["one"], [PROMPT])
    method = Method(
        sampler=TreePairs(iterations=12, branches=4, max_depth=2),
        advantage=identity,
        loss=SiblingPreference(beta=0.5),
        aggregation=group_mean,
    )
    policy = trained(
        model,
        tmp_path / "run",
        [Task(str(i), PROMPT) for i in range(4)],
        method,
        max_steps=25,
        prompts_per_step=4,
        learning_rate=1e-2,
        env=SingleTurn((RewardTerm("lower_case", lower_case),)),
    )
    shares = [lower_case_share(text) for text in answers(policy, [PROMPT], 200)]
    assert sum(shares) / 200 > 0.5  # a random token has a lower-case letter in one of four
