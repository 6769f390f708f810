"""Methods for agents where something has to be looked up: they learn, and by their signal."""

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.method import Method
from grupo.methods.arpo_agentic import arpo_agentic
from grupo.methods.grpo import grpo
from grupo.methods.igpo import igpo
from grupo.rollouts.samplers import Independent, WithBelief
from grupo.testing.smoke.report_card import MARGIN
from grupo.testing.smoke.run import negative
from tests.helpers.digit_lookup_env import gain

ARPO = arpo_agentic(leaves=8, first=4)
IGPO = igpo(kl=0.0).but(sample=WithBelief(Independent(8), lead=""))


def turned(method: Method) -> Method:
    return method.but(credit=chain(method.credit, negative))


@pytest.fixture(autouse=True)
def alone():
    torch.set_num_threads(1)


@pytest.mark.slow
def test_branching_learns_to_look_up_and_to_say():
    one = gain(ARPO, "right")
    assert one > MARGIN
    assert gain(turned(ARPO), "right") < one - MARGIN


@pytest.mark.slow
def test_belief_alone_teaches_to_look_up():
    # nobody is ever paid: for a while only, since nobody learns to answer either
    few = {"part": "asked", "reward": None, "steps": 8}
    one = gain(IGPO, **few)
    assert one > MARGIN
    assert gain(turned(IGPO), **few) < one - MARGIN
    assert gain(grpo(8, kl=0.0), **few) == 0  # no reward differs: nothing is learned


@pytest.mark.slow
def test_belief_and_outcome_teach_to_look_up_and_to_say():
    one = gain(IGPO, "right")
    assert one > MARGIN
    assert gain(turned(IGPO), "right") < one - MARGIN
