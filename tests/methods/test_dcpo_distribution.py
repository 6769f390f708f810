import pytest
import torch

from grupo.algo.advantages.kl_in_reward import TemperatureRatioBonus
from grupo.algo.aggregation import token_mean
from grupo.algo.minibatches import Updates
from grupo.core.controllers import LastValue
from grupo.core.schedules import resolve_schedules
from grupo.methods.dcpo_distribution import dcpo_distribution
from grupo.testing.batches import make_batch

LOG_1_1 = 0.09531017980432493


def advantage_of(x, right, entropy, target=0.5, hotter=LOG_1_1, colder=-0.3):
    rows = len(right)
    seen = {
        "logp@t=1.2": [[-1.0 + hotter]] * rows,
        "logp@t=0.8": [[-1.0 + colder]] * rows,
    }
    batch = make_batch([0] * rows, reward_terms={"correct": right}, signals=seen)
    return (
        TemperatureRatioBonus(entropy, target)(torch.tensor(x).double(), batch).flatten().tolist()
    )


def test_correct_rollouts_gain_the_tempered_ratio():
    # a' = 0.1 / 0.5, a = 0.2 / 1.2 = 1/6
    A = advantage_of([1.0, -1.0], [1.0, 0.0], entropy=0.4)
    assert pytest.approx([5 / 6 + 1.1 / 6, -5 / 6]) == A


def test_distance_from_the_target_is_capped():
    assert advantage_of([1.0, -1.0], [1.0, 0.0], entropy=-2.5) == pytest.approx(
        advantage_of([1.0, -1.0], [1.0, 0.0], entropy=0.4)
    )


def test_entropy_above_the_target_uses_the_colder_policy():
    A = advantage_of([0.0, 0.0], [1.0, 0.0], entropy=0.9, colder=-LOG_1_1)
    assert pytest.approx([1 / 1.1 / 6, 0.0]) == A


def test_at_the_target_or_without_correct_rollouts_it_is_grpo():
    assert advantage_of([1.0, -1.0], [1.0, 0.0], entropy=0.5) == [1.0, -1.0]
    assert advantage_of([1.0, -1.0], [0.0, 0.0], entropy=0.0) == [1.0, -1.0]


def test_defaults_are_these():
    method = dcpo_distribution()
    assert method.advantage.estimators[-1].entropy == LastValue("policy/entropy", 0.0)
    assert (
        resolve_schedules(method, 0.0, {"policy/entropy": [0.7]}).advantage.estimators[-1].entropy
        == 0.7
    )
    assert method.requires.all_signals == {"logp@t=1.2", "logp@t=0.8"}


def test_mean_and_update_plan_are_the_released_ones():
    assert dcpo_distribution().aggregation is token_mean
    assert dcpo_distribution().updates == Updates(minibatches=4)
