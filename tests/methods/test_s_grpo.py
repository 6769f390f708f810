"""S-GRPO: five exits of one thought, of which the second, third and fifth are right.

That it learns is shown on a toy: its instruction to answer does not fit the proving world.
"""

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.core import group_ops
from grupo.method import Method
from grupo.methods.s_grpo import DecayingReward, s_grpo
from grupo.rollouts.samplers import EarlyExits
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import negate
from tests.helpers import letter_envs

RIGHT = [0.0, 1.0, 1.0, 0.0, 1.0]


def serial(reward=RIGHT, place=(0.0, 1.0, 2.0, 3.0, 4.0), group=(0,) * 5, length=None):
    parts = {"exit_index": list(place)}
    return make_batch(group=list(group), reward=list(reward), length=length, reward_terms=parts)


def decayed(batch):
    return DecayingReward()(batch.reward, batch).tolist()


def test_each_right_exit_earns_half_of_the_one_before():
    assert decayed(serial()) == [0.0, 1.0, 0.5, 0.0, 0.25]


def test_the_advantage_is_what_is_earned_above_the_mean():
    A = serial().with_advantage(s_grpo().advantage).advantage[:, 0]  # the mean is 1.75 / 5 = 0.35
    assert A.tolist() == pytest.approx([-0.35, 0.65, 0.15, -0.35, -0.1])


def test_the_other_reading_divides_by_the_deviation():
    scaled = chain(DecayingReward(), Center(), ScaleByStd(0.0, group_ops.population_std))
    A = serial().with_advantage(scaled).advantage[:, 0]
    assert A.tolist() == pytest.approx([-0.935, 1.737, 0.401, -0.935, -0.267], abs=5e-4)


def test_the_order_is_that_of_the_exits_wherever_they_stand_in_the_batch():
    backwards = serial(RIGHT[::-1], (4.0, 3.0, 2.0, 1.0, 0.0))
    assert decayed(backwards) == [0.25, 0.0, 0.5, 1.0, 0.0]
    without = serial([1.0, 1.0], (1.0, 4.0), (0, 0))  # others of the group could not be judged
    assert decayed(without) == [1.0, 0.5]


def test_groups_count_for_themselves():
    two = serial([1.0, 1.0, 1.0, 1.0], (0.0, 1.0, 0.0, 1.0), (0, 0, 1, 1))
    assert decayed(two) == [1.0, 0.5, 1.0, 0.5]


def test_where_all_are_wrong_nothing_is_learned():
    assert serial([0.0] * 5).with_advantage(s_grpo().advantage).advantage.abs().max() == 0


def test_the_defaults_make_eight_of_one_thought():
    assert s_grpo().sampler == EarlyExits(7)
    assert s_grpo().sampler.group_size == 8
    assert s_grpo().required_reward_terms == {"exit_index"}
    assert torch.equal(
        DecayingReward()(torch.zeros(2), serial([0.0] * 2, (0.0, 1.0), (0, 0))), torch.zeros(2)
    )


def shared(weigh) -> float:
    """Gradient at the shared first token where only the whole path is correct."""
    # exits after one and after two tokens, and all three; then an answer of one token
    batch = serial([0.0, 0.0, 1.0], (0.0, 1.0, 2.0), (0,) * 3, length=[2, 3, 4])
    batch = batch.with_advantage(s_grpo().advantage)  # A = -1/3, -1/3, 2/3
    return float((weigh(batch) * batch.advantage)[:, 0].sum())


def test_where_only_the_whole_path_is_right_means_over_rows_push_its_beginning_down():
    # a row counts a third, and a token of it what its length leaves: short exits the most
    assert shared(sequence_mean) == pytest.approx((-1 / 3 / 2 - 1 / 3 / 3 + 2 / 3 / 4) / 3)
    assert shared(token_mean) == pytest.approx(0)


def answered(digit: str, steps: int) -> list[tuple[str, str]]:
    """Closed thinking with each answer; two times of three there is no answer."""
    thought, answer = letter_envs.chain(digit, steps).split(letter_envs.CLOSE)
    return [(thought + letter_envs.CLOSE, answer_text) for answer_text in (answer, "-", "-")]


def doubting() -> Iterator[tuple[str, str]]:
    """Thoughts, mostly of ten steps, and answers wherever they are closed."""
    for digit in "012":
        for steps in (*[10] * 14, *range(3, 10)):
            for thought, answer_text in answered(digit, steps):
                yield f"{digit}=", thought + answer_text
        for steps in range(1, 11):
            for thought, answer_text in answered(digit, steps):
                yield f"{digit}={thought}", answer_text


@cache
def doubter() -> str:
    """The folder of a model trained on these demonstrations."""
    return letter_envs.train_model("doubter", list(doubting()), 150, limit=16)


def rights(method: Method, seed: int, steps: int = 20) -> tuple[float, float]:
    """Accuracy of the whole path, before and after training."""
    given = {"limit": 16, "env": letter_envs.ANSWERED, "seed": seed}
    made = letter_envs.learner(doubter(), letter_envs.Chains(), method, steps, **given)
    before = letter_envs.accuracy(made, made.tasks)
    for _ in range(steps):
        made.step()
    return before, letter_envs.accuracy(made, made.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_whole_path_is_right_more_often_and_by_its_signal(seed):
    torch.set_num_threads(1)
    method = s_grpo().replace(sampler=EarlyExits(7, "", letter_envs.CLOSE))
    before, after = rights(method, seed)
    assert 0.3 < before < 0.7
    assert after > before + 0.2  # five standard errors of 384 attempts each, and more
    turned = method.replace(advantage=chain(method.advantage, negate))
    assert rights(turned, seed)[1] < 0.1
