"""Mixed-R1: sum of the task reward and the format reward."""

import pytest

from grupo.methods.mixed_r1 import mixed_r1
from grupo.testing.batches import make_batch


def test_reward_is_sum_of_task_and_format_terms():
    parts = {"correct": [0.5, 0.0], "format": [1.0, 0.0]}
    batch = make_batch(group=[0, 0], reward=[7.0, 7.0], reward_terms=parts)
    advantage = batch.with_advantage(mixed_r1().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)  # 1.5 and 0
