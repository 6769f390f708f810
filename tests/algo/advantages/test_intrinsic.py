"""Rewards from the signals of a rollout's own tokens."""

from dataclasses import replace
from math import nan

import torch

from grupo.algo.advantages.intrinsic import MeanSignal, SumSignal, ref_log_ratio
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch, rich_batch


def test_sum_and_mean_signal_skip_masked_tokens():
    signals = {"self_certainty": [[1.0, nan], [2.0, 4.0]]}
    batch = make_batch(group=[0, 0], reward=[5.0, 5.0], length=[1, 2], signals=signals)
    assert SumSignal("self_certainty")(batch.reward, batch).tolist() == [1.0, 6.0]
    assert MeanSignal("self_certainty", 2.0)(batch.reward, batch).tolist() == [2.0, 6.0]


def test_sums_include_all_rows_of_a_rollout():
    batch = rich_batch({"entropy", "logp@ref"})
    rows = batch.rollout == 2
    assert rows.sum() == 2
    in_rollout = batch.mask & rows[:, None]
    assert torch.allclose(SumSignal()(batch.reward, batch)[2], batch.old_logp[in_rollout].sum())
    assert torch.allclose(
        MeanSignal("entropy")(batch.reward, batch)[2], batch.signals["entropy"][in_rollout].mean()
    )
    log_ratio = (batch.old_logp - batch.signals["logp@ref"])[in_rollout].sum()
    assert torch.allclose(ref_log_ratio(batch)[2], log_ratio)


def test_rollout_without_actions_has_mean_0():
    batch = make_batch(group=[0, 0], length=[1, 1], logp=-2.0)
    no_actions = replace(batch, mask=batch.mask & torch.tensor([[True], [False]]))
    assert MeanSignal()(batch.reward, no_actions).tolist() == [-2.0, 0.0]


def test_old_logp_is_not_a_required_signal():
    assert (
        merged_requires(SumSignal()).all_signals
        == merged_requires(MeanSignal()).all_signals
        == frozenset()
    )
    assert merged_requires(MeanSignal("entropy")).all_signals == {"entropy"}
