import pytest
import torch

from grupo.core.batch import Batch, SignalDict, broadcast_to_tokens, select_input_rows
from grupo.testing.batches import make_batch, rich_batch
from grupo.util.errors import MissingSignalError


def two_rows_of_one_rollout():
    return Batch.of(
        torch.tensor([3.0, -1.0], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor([0, 0, 1]),
        mask=torch.tensor([[True, False], [True, True], [True, False]]),
        old_logp=torch.zeros(3, 2, dtype=torch.float64),
        inputs={"tokens": torch.tensor([5, 6, 7]), "text": ("a", "b", "c"), "model": "tiny"},
    )


def test_initial_advantage_is_the_reward():
    assert two_rows_of_one_rollout().advantage.tolist() == [[3, 0], [3, 3], [-1, 0]]


def test_lengths_count_actions_over_all_rows_of_a_rollout():
    assert two_rows_of_one_rollout().lengths.tolist() == [1 + 2, 1]


def test_selected_rows_keep_their_rollouts_and_inputs():
    selected = two_rows_of_one_rollout().select_rows(torch.tensor([2, 0]))
    assert selected.rollout.tolist() == [1, 0]
    assert selected.advantage.tolist() == [[-1, 0], [3, 0]]
    assert selected.inputs["tokens"].tolist() == [7, 5]
    assert selected.inputs["text"] == ("c", "a")
    assert selected.inputs["model"] == "tiny"
    assert selected.reward.tolist() == [3.0, -1.0]


def test_values_per_rollout_are_broadcast_to_rows_and_masked():
    batch = two_rows_of_one_rollout()
    per_action = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert broadcast_to_tokens(torch.tensor([1.0, 2.0]), batch).tolist() == [[1, 0], [1, 1], [2, 0]]
    assert broadcast_to_tokens(per_action, batch).tolist() == [[1, 0], [3, 4], [5, 0]]


def test_missing_signal_raises_with_its_name():
    with pytest.raises(
        MissingSignalError, match=r"'entropy' was not measured\. Measured: logp@ref"
    ):
        make_batch(group=[0]).signals["entropy"]
    with pytest.raises(MissingSignalError, match="nothing"):
        SignalDict()["x"]


def test_signals_can_be_added():
    batch = make_batch(group=[0]).with_signals({"entropy": torch.ones(1, 1)})
    assert set(batch.signals) == {"logp@ref", "logp@sampler", "entropy"}


def test_inputs_without_rows_are_unchanged():
    assert select_input_rows("anything", torch.tensor([0])) == "anything"


def test_rich_batch_covers_the_cases_of_the_properties():
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
