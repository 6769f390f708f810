"""S-GRPO: five early exits of one thought, of which the second, third and fifth are correct.

Training is tested on a toy model: the instruction to answer does not fit the environment of the
smoke training.
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


def exits_batch(reward=RIGHT, place=(0.0, 1.0, 2.0, 3.0, 4.0), group=(0,) * 5, length=None):
    parts = {"exit_index": list(place)}
    return make_batch(group=list(group), reward=list(reward), length=length, reward_terms=parts)


def decaying_rewards(batch):
    return DecayingReward()(batch.reward, batch).tolist()


def test_reward_halves_with_each_correct_exit():
    assert decaying_rewards(exits_batch()) == [0.0, 1.0, 0.5, 0.0, 0.25]


def test_advantage_is_centred_reward():
    A = (
        exits_batch().with_advantage(s_grpo().advantage).advantage[:, 0]
    )  # the mean is 1.75 / 5 = 0.35
    assert A.tolist() == pytest.approx([-0.35, 0.65, 0.15, -0.35, -0.1])


def test_advantage_may_be_divided_by_std():
    scaled = chain(DecayingReward(), Center(), ScaleByStd(0.0, group_ops.population_std))
    A = exits_batch().with_advantage(scaled).advantage[:, 0]
    assert A.tolist() == pytest.approx([-0.935, 1.737, 0.401, -0.935, -0.267], abs=5e-4)


def test_exit_order_is_independent_of_batch_position():
    backwards = exits_batch(RIGHT[::-1], (4.0, 3.0, 2.0, 1.0, 0.0))
    assert decaying_rewards(backwards) == [0.25, 0.0, 0.5, 1.0, 0.0]
    without = exits_batch(
        [1.0, 1.0], (1.0, 4.0), (0, 0)
    )  # other rollouts of the group have no score
    assert decaying_rewards(without) == [1.0, 0.5]


def test_groups_are_independent():
    two_groups = exits_batch([1.0, 1.0, 1.0, 1.0], (0.0, 1.0, 0.0, 1.0), (0, 0, 1, 1))
    assert decaying_rewards(two_groups) == [1.0, 0.5, 1.0, 0.5]


def test_all_wrong_group_has_zero_advantage():
    assert exits_batch([0.0] * 5).with_advantage(s_grpo().advantage).advantage.abs().max() == 0


def test_default_group_has_eight_exits():
    assert s_grpo().sampler == EarlyExits(7)
    assert s_grpo().sampler.group_size == 8
    assert s_grpo().requires.reward_terms == {"exit_index"}
    assert torch.equal(
        DecayingReward()(torch.zeros(2), exits_batch([0.0] * 2, (0.0, 1.0), (0, 0))), torch.zeros(2)
    )


def shared_token_gradient(weigh) -> float:
    """Gradient at the shared first token where only the whole path is correct."""
    # exits after one and after two tokens, and all three; then an answer of one token
    batch = exits_batch([0.0, 0.0, 1.0], (0.0, 1.0, 2.0), (0,) * 3, length=[2, 3, 4])
    batch = batch.with_advantage(s_grpo().advantage)  # A = -1/3, -1/3, 2/3
    return float((weigh(batch) * batch.advantage)[:, 0].sum())


def test_row_mean_penalizes_shared_prefix_when_only_full_path_is_correct():
    # a row counts a third, and a token of it what its length leaves: short exits the most
    assert shared_token_gradient(sequence_mean) == pytest.approx(
        (-1 / 3 / 2 - 1 / 3 / 3 + 2 / 3 / 4) / 3
    )
    assert shared_token_gradient(token_mean) == pytest.approx(0)


def examples_for(digit: str, steps: int) -> list[tuple[str, str]]:
    """Closed thinking with each answer; two of three examples have no answer."""
    thought, answer = letter_envs.chain(digit, steps).split(letter_envs.CLOSE)
    return [(thought + letter_envs.CLOSE, answer_text) for answer_text in (answer, "-", "-")]


def training_examples() -> Iterator[tuple[str, str]]:
    """Thoughts, mostly of ten steps, with an answer after each close tag."""
    for digit in "012":
        for steps in (*[10] * 14, *range(3, 10)):
            for thought, answer_text in examples_for(digit, steps):
                yield f"{digit}=", thought + answer_text
        for steps in range(1, 11):
            for thought, answer_text in examples_for(digit, steps):
                yield f"{digit}={thought}", answer_text


@cache
def pretrained_model() -> str:
    """The folder of a model trained on these demonstrations."""
    return letter_envs.train_model("doubter", list(training_examples()), 150, limit=16)


def accuracies(method: Method, seed: int, steps: int = 20) -> tuple[float, float]:
    """Accuracy of the whole path, before and after training."""
    options = {"limit": 16, "env": letter_envs.ANSWERED, "seed": seed}
    trainer = letter_envs.learner(
        pretrained_model(), letter_envs.Chains(), method, steps, **options
    )
    before = letter_envs.accuracy(trainer, trainer.tasks)
    for _ in range(steps):
        trainer.step()
    return before, letter_envs.accuracy(trainer, trainer.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_trains_full_path_by_its_signal(seed):
    torch.set_num_threads(1)
    method = s_grpo().replace(sampler=EarlyExits(7, "", letter_envs.CLOSE))
    before, after = accuracies(method, seed)
    assert 0.3 < before < 0.7
    assert after > before + 0.2  # five standard errors of 384 attempts each, and more
    flipped = method.replace(advantage=chain(method.advantage, negate))
    assert accuracies(flipped, seed)[1] < 0.1
