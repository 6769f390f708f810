"""Methods for agents where something has to be looked up: they learn, and by their signal."""

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


def turned(method: Method) -> Method:
    return method.replace(advantage=chain(method.advantage, negate))


@pytest.fixture(autouse=True)
def alone():
    torch.set_num_threads(1)


@pytest.mark.slow
def test_branching_learns_to_look_up_and_to_answer():
    one = gain(ARPO, "right")
    assert one > MIN_GAIN
    assert gain(turned(ARPO), "right") < one - MIN_GAIN


@pytest.mark.slow
def test_belief_alone_trains_the_lookup():
    # without a reward, and for few steps, since the answer is not learned either
    few = {"reward_term": "asked", "reward": None, "steps": 8}
    one = gain(IGPO, **few)
    assert one > MIN_GAIN
    assert gain(turned(IGPO), **few) < one - MIN_GAIN
    assert gain(grpo(8, kl_coef=0.0), **few) == 0  # no reward differs: nothing is learned


@pytest.mark.slow
def test_belief_and_outcome_train_lookup_and_answer():
    one = gain(IGPO, "right")
    assert one > MIN_GAIN
    assert gain(turned(IGPO), "right") < one - MIN_GAIN
