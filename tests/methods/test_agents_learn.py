"""Training of agentic methods on a lookup task, with and without their reward signal."""

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.method import Method
from grupo.methods.arpo_agentic import arpo_agentic
from grupo.methods.grpo import grpo
from grupo.methods.igpo import igpo
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief
from grupo.testing.smoke.report_card import MIN_GAIN
from grupo.testing.smoke.run import negate
from tests.helpers.digit_lookup_env import gain

ARPO = arpo_agentic(group_size=8, initial_rollouts=4)
IGPO = igpo(kl_coef=0.0).replace(sampler=WithAnswerBelief(GroupSampler(8), answer_prefix=""))


def flip_sign(method: Method) -> Method:
    return method.replace(advantage=chain(method.advantage, negate))


@pytest.fixture(autouse=True)
def single_thread():
    torch.set_num_threads(1)


@pytest.mark.slow
def test_branching_trains_lookup_and_answer():
    trained_gain = gain(ARPO, "right")
    assert trained_gain > MIN_GAIN
    assert gain(flip_sign(ARPO), "right") < trained_gain - MIN_GAIN


@pytest.mark.slow
def test_belief_reward_alone_trains_lookup():
    # without a reward, and for 8 steps, since the answer is not learned either
    options = {"reward_term": "asked", "reward": None, "steps": 8}
    trained_gain = gain(IGPO, **options)
    assert trained_gain > MIN_GAIN
    assert gain(flip_sign(IGPO), **options) < trained_gain - MIN_GAIN
    assert gain(grpo(8, kl_coef=0.0), **options) == 0  # equal rewards have zero advantage


@pytest.mark.slow
def test_belief_and_outcome_rewards_train_lookup_and_answer():
    trained_gain = gain(IGPO, "right")
    assert trained_gain > MIN_GAIN
    assert gain(flip_sign(IGPO), "right") < trained_gain - MIN_GAIN
