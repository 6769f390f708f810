"""One number of a rollout out of many of its actions."""

from math import nan

import torch

from grupo.algo.advantages.intrinsic import MeanOf, SumOf, drift
from grupo.testing.batches import batch_of, rich_batch


def test_sums_and_means_run_over_what_was_done():
    seen = {"self_certainty": [[1.0, nan], [2.0, 4.0]]}
    batch = batch_of(group=[0, 0], reward=[5.0, 5.0], length=[1, 2], seen=seen)
    assert SumOf("self_certainty")(batch.reward, batch).tolist() == [1.0, 6.0]
    assert MeanOf("self_certainty", 2.0)(batch.reward, batch).tolist() == [2.0, 6.0]


def test_all_rows_of_a_rollout_count_and_nothing_masked():
    batch = rich_batch({"entropy", "logp@ref"})
    rows = batch.rollout == 2
    assert rows.sum() == 2
    own = batch.mask & rows[:, None]
    assert torch.allclose(SumOf()(batch.reward, batch)[2], batch.old_logp[own].sum())
    assert torch.allclose(
        MeanOf("entropy")(batch.reward, batch)[2], batch.seen["entropy"][own].mean()
    )
    away = (batch.old_logp - batch.seen["logp@ref"])[own].sum()
    assert torch.allclose(drift(batch)[2], away)


def test_who_did_nothing_has_zero():
    batch = batch_of(group=[0, 0], length=[1, 1], logp=-2.0)
    silent = type(batch)(**{**vars(batch), "mask": batch.mask & torch.tensor([[True], [False]])})
    assert MeanOf()(batch.reward, silent).tolist() == [-2.0, 0.0]


def test_the_log_probability_of_what_was_taken_need_not_be_asked_for():
    assert SumOf().needs == MeanOf().needs == frozenset()
    assert MeanOf("entropy").needs == {"entropy"}
