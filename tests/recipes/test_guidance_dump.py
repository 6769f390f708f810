"""The world of three sources: what the policy can do before training, and a run of the bandit."""

import numpy as np
import pytest

from grupo.rollouts.curricula import ShuffledTasks
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

DUMP = load_module_file(ROOT / "recipes" / "guidance" / "dump.py")


def test_correct_items_are_certain_unlikely_and_impossible_by_source():
    env = DUMP.ThreeSources(tasks_per_source=4)(seed=0)
    chances = np.exp(env.prior) / np.exp(env.prior).sum(1, keepdims=True)
    at_end = np.arange(len(env.prior)) % 6 == 5
    is_key = (env.preferred > 0).any(1) & ~at_end
    of_key = (chances * (env.preferred > 0)).sum(1)
    sources = np.arange(len(env.prior)) // 6 % 3
    trivial, learnable, impossible = (of_key[is_key & (sources == i)] for i in range(3))
    assert [len(x) for x in (trivial, learnable, impossible)] == [4, 8, 12]  # 4 tasks each
    assert trivial.min() > 0.99
    assert 0.1 < learnable.min() <= learnable.max() < 0.3
    assert impossible.max() < 1e-5


def test_arms_differ_in_the_curriculum_only():
    equal, cheat, bandit = (DUMP.ARMS[x] for x in ("equal shares", "learnable only", "bandit"))
    assert equal.curriculum == ShuffledTasks()
    assert cheat.replace(curriculum=ShuffledTasks()) == equal
    assert bandit.replace(curriculum=ShuffledTasks()) == equal
    assert bandit.curriculum.sources == ()


@pytest.mark.slow
def test_the_bandit_draws_the_learnable_source():
    assert DUMP.run(DUMP.ARMS["bandit"], seed=100)["middle"] > 0.6
