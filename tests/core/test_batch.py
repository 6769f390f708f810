import pytest
import torch

from grupo.core.batch import Batch, SignalDict, broadcast_to_tokens, select_input_rows
from grupo.core.errors import MissingSignalError
from grupo.testing.batches import make_batch, rich_batch


def two_rows_of_one_rollout():
    return Batch.of(
        torch.tensor([3.0, -1.0], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor([0, 0, 1]),
        mask=torch.tensor([[True, False], [True, True], [True, False]]),
        old_logp=torch.zeros(3, 2, dtype=torch.float64),
        inputs={"tokens": torch.tensor([5, 6, 7]), "text": ("a", "b", "c"), "model": "tiny"},
    )


def test_a_batch_is_born_with_its_reward_as_advantage():
    assert two_rows_of_one_rollout().advantage.tolist() == [[3, 0], [3, 3], [-1, 0]]


def test_lengths_count_a_rollout_s_actions_over_all_its_rows():
    assert two_rows_of_one_rollout().lengths.tolist() == [1 + 2, 1]


def test_taken_rows_keep_their_rollouts_and_their_inputs():
    part = two_rows_of_one_rollout().select_rows(torch.tensor([2, 0]))
    assert part.rollout.tolist() == [1, 0]
    assert part.advantage.tolist() == [[-1, 0], [3, 0]]
    assert part.inputs["tokens"].tolist() == [7, 5]
    assert part.inputs["text"] == ("c", "a")
    assert part.inputs["model"] == "tiny"
    assert part.reward.tolist() == [3.0, -1.0]


def test_credit_per_rollout_is_spread_over_its_rows_and_masked():
    batch = two_rows_of_one_rollout()
    per_action = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert broadcast_to_tokens(torch.tensor([1.0, 2.0]), batch).tolist() == [[1, 0], [1, 1], [2, 0]]
    assert broadcast_to_tokens(per_action, batch).tolist() == [[1, 0], [3, 4], [5, 0]]


def test_a_signal_that_was_not_measured_raises_by_its_name():
    with pytest.raises(
        MissingSignalError, match=r"'entropy' was not measured\. Measured: logp@ref"
    ):
        make_batch(group=[0]).signals["entropy"]
    with pytest.raises(MissingSignalError, match="nothing"):
        SignalDict()["x"]


def test_more_may_be_measured():
    batch = make_batch(group=[0]).with_signals({"entropy": torch.ones(1, 1)})
    assert set(batch.signals) == {"logp@ref", "logp@sampler", "entropy"}


def test_what_is_not_kept_per_row_is_left_as_it_is():
    assert select_input_rows("anything", torch.tensor([0])) == "anything"


def test_the_rich_batch_has_what_laws_are_about():
    batch = rich_batch(["logp@ref", "entropy"], ["style"])
    assert batch.group.bincount().tolist() == [4, 5, 4, 4, 1]
    assert (batch.rollout.bincount() == 2).sum() == 1
    assert batch.reward[batch.group == 3].eq(0).all()
    assert batch.reward[batch.group != 3].gt(0).all()
    assert len({*batch.mask.sum(1).tolist()}) > 3
    assert not batch.mask[:, 2].any()
    assert {*batch.turn[batch.mask].tolist()} == {0, 1}
    assert (batch.signals["entropy"] > 0).all()
    assert (batch.signals["logp@ref"] < 0).all()
    assert set(batch.reward_terms) == {"correct", "style"}
