"""One number of a rollout out of many of its actions."""

from math import nan

import torch

from grupo.algo.advantages.intrinsic import MeanSignal, SumSignal, ref_log_ratio
from grupo.testing.batches import make_batch, rich_batch


def test_sums_and_means_run_over_what_was_done():
    seen = {"self_certainty": [[1.0, nan], [2.0, 4.0]]}
    batch = make_batch(group=[0, 0], reward=[5.0, 5.0], length=[1, 2], signals=seen)
    assert SumSignal("self_certainty")(batch.reward, batch).tolist() == [1.0, 6.0]
    assert MeanSignal("self_certainty", 2.0)(batch.reward, batch).tolist() == [2.0, 6.0]


def test_all_rows_of_a_rollout_count_and_nothing_masked():
    batch = rich_batch({"entropy", "logp@ref"})
    rows = batch.rollout == 2
    assert rows.sum() == 2
    own = batch.mask & rows[:, None]
    assert torch.allclose(SumSignal()(batch.reward, batch)[2], batch.old_logp[own].sum())
    assert torch.allclose(
        MeanSignal("entropy")(batch.reward, batch)[2], batch.signals["entropy"][own].mean()
    )
    away = (batch.old_logp - batch.signals["logp@ref"])[own].sum()
    assert torch.allclose(ref_log_ratio(batch)[2], away)


def test_who_did_nothing_has_zero():
    batch = make_batch(group=[0, 0], length=[1, 1], logp=-2.0)
    silent = type(batch)(**{**vars(batch), "mask": batch.mask & torch.tensor([[True], [False]])})
    assert MeanSignal()(batch.reward, silent).tolist() == [-2.0, 0.0]


def test_the_log_probability_of_what_was_taken_need_not_be_asked_for():
    assert SumSignal().required_signals == MeanSignal().required_signals == frozenset()
    assert MeanSignal("entropy").required_signals == {"entropy"}
