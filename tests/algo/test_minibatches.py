from random import Random

import torch

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.testing.batches import make_batch

BATCH = make_batch(group=[0, 1, 0, 2, 1, 3, 4], length=[1, 2, 3, 1, 2, 3, 1])


def test_single_update_yields_the_whole_batch_once():
    assert [*SingleUpdate()(BATCH, Random(0))] == [BATCH]


def test_updates_cover_every_row_once_per_epoch_and_keep_groups_whole():
    minibatches = [*Updates(epochs=3, minibatches=2)(BATCH, Random(0))]
    epochs = [
        [sorted(minibatch.rollout.tolist()) for minibatch in minibatches[i : i + 2]]
        for i in (0, 2, 4)
    ]
    assert all(sorted(a + b) == [0, 1, 2, 3, 4, 5, 6] for a, b in epochs)
    assert all(({0, 2} <= {*a}) != ({0, 2} <= {*b}) for a, b in epochs)
    assert len({tuple(a) for a, _ in epochs}) > 1  # another order each epoch


def test_minibatches_keep_the_numbering_of_rollouts_and_groups():
    for minibatch in Updates(minibatches=5)(BATCH, Random(1)):
        assert len(minibatch.row_group.unique()) == 1
        assert torch.equal(minibatch.mask, BATCH.mask[minibatch.rollout])


def test_there_are_at_most_as_many_minibatches_as_groups():
    assert len([*Updates(minibatches=99)(BATCH, Random(0))]) == 5


def test_update_order_depends_only_on_the_generator():
    orders = [[p.rollout.tolist() for p in Updates(2, 2)(BATCH, Random(3))] for _ in range(2)]
    assert orders[0] == orders[1]
