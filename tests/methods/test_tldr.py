"""TLDR: the length penalty depends on the level."""

import asyncio

import pytest

from grupo.methods.tldr import INSTRUCTIONS, LevelLengthPenalty, tldr
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

SHORT, MEDIUM, LONG = 0.0, 1.0, 2.0


def batch(level, reward, length):
    return make_batch(
        group=[0] * len(level), reward=reward, length=length, reward_terms={"level": level}
    )


def test_length_penalty_is_highest_for_short_level():
    b = batch([SHORT, MEDIUM, LONG], [1.0] * 3, [2] * 3)
    r = LevelLengthPenalty(max_length=5, length_coefs=(0.5, 0.25, 0.0))(b.reward, b)
    assert r.tolist() == pytest.approx([0.8, 0.9, 1.0])  # 2/5 of the limit


def test_wrong_answer_has_zero_reward_at_any_length():
    b = batch([SHORT] * 2, [0.0, 0.0], [1, 5])
    assert LevelLengthPenalty(5, (0.5, 0.25, 0.0))(b.reward, b).tolist() == [0.0, 0.0]


def test_penalty_saturates_beyond_limit():
    b = batch([SHORT] * 2, [1.0, 1.0], [5, 50])
    assert LevelLengthPenalty(5, (0.5, 0.25, 0.0))(b.reward, b).tolist() == [0.5, 0.5]


def test_rollouts_are_compared_within_level():
    b = batch([SHORT, SHORT, LONG, LONG], [1.0] * 4, [1, 4, 1, 4])
    advantage = b.with_advantage(tldr(max_length=4).advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0, 0.0], rel=1e-5)


def test_each_third_of_a_group_has_the_instruction_of_its_level():
    sampler = tldr(max_length=4, group_size=6).sampler
    group = asyncio.run(sampler(TASK, Once(), script(lambda context, key: ".")))
    prompts = [rollout.turns[0][0] for rollout in group.rollouts]
    assert prompts == [TASK.prompt + text for text in INSTRUCTIONS for _ in range(2)]
    assert [rollout.reward_terms["level"] for rollout in group.rollouts] == [0, 0, 1, 1, 2, 2]


def test_every_level_needs_an_instruction_and_an_equal_part():
    with pytest.raises(ConfigError, match=r"tldr.instructions: 2 texts. Allowed: 3"):
        tldr(max_length=4, instructions=("briefly", "at length"))
    with pytest.raises(ConfigError, match=r"SplitGroup.group_size: 8. Allowed: a multiple of 3"):
        tldr(max_length=4, group_size=8)
