"""Corrupted rewards: worked by hand."""

import asyncio
from statistics import fmean

import pytest

from grupo.algo.advantages import Center, NegativeSamples, PositiveSamples, ScaleByStd, chain
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import (
    ExactMatch,
    InsideTag,
    Inverted,
    MeanLogProb,
    RandomReward,
    TagFormat,
    WhereFormatted,
)
from grupo.rewards.majority_vote import MajorityVote
from grupo.testing.batches import make_batch

TASK = Task("k", "2 + 2 =", "4")
RIGHT, WRONG = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
UNFORMATTED = "<answer>5</answer>"
CORRECT = ExactMatch(InsideTag("answer"))


def answers(*texts):
    return [
        Rollout((("?", Response((1,), (-1.0,), text=text, rng_key=key)),))
        for key, text in enumerate(texts)
    ]


def scores(reward, *texts):
    env = SingleTurn((RewardTerm("reward", reward),))
    return [result.reward for result in asyncio.run(env.score(TASK, answers(*texts)))]


def test_an_incorrect_answer_in_good_format_is_paid_and_a_correct_one_is_not():
    reward = WhereFormatted(Inverted(CORRECT), TagFormat())
    assert scores(reward, RIGHT, WRONG, UNFORMATTED) == [0.0, 1.0, 0.0]


def test_every_corruption_is_behind_the_format():
    truth = WhereFormatted(CORRECT, TagFormat())
    assert scores(truth, RIGHT, WRONG, "<answer>4</answer>") == [1.0, 0.0, 0.0]
    majority = WhereFormatted(MajorityVote(InsideTag("answer")), TagFormat())
    assert scores(majority, WRONG, WRONG, RIGHT, UNFORMATTED) == [1.0, 1.0, 0.0, 0.0]
    certain = WhereFormatted(RandomReward(1.0), TagFormat())
    assert scores(certain, RIGHT, WRONG, UNFORMATTED) == [1.0, 1.0, 0.0]


def test_random_rewards_have_their_probability_and_are_repeated():
    texts = [RIGHT] * 2000
    first = scores(RandomReward(0.5), *texts)
    assert fmean(first) == pytest.approx(0.5, abs=0.04)
    assert scores(RandomReward(0.5), *texts) == first
    assert scores(RandomReward(0.5, seed=1), *texts) != first
    assert fmean(scores(RandomReward(0.1), *texts)) == pytest.approx(0.1, abs=0.03)


def test_entropy_is_minimised_by_the_mean_log_probability():
    rollout = Rollout((("?", Response((1, 2, 3), (-1.0, -2.0, -3.0))),))
    assert MeanLogProb().score(TASK, rollout) == -2.0


def test_signs_are_filtered_after_the_advantage_of_the_whole_group():
    batch = make_batch(group=[0] * 4, reward=[1.0, 1.0, 1.0, 0.0])  # std 0.5 by G - 1
    for estimator, expected in (
        (NegativeSamples(), [0, 0, 0, -1.5]),
        (PositiveSamples(), [0.5, 0.5, 0.5, 0]),
    ):
        advantage = chain(Center(), ScaleByStd(), estimator)(batch.reward, batch)
        assert advantage.tolist() == pytest.approx(expected, abs=1e-4)
