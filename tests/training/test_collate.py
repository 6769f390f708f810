"""Collation of ragged rollouts: contexts, turns, and tokens that are not trained on."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.batch import Batch
from grupo.core.types import Group, Response, Rollout, Task
from grupo.training.collect.collected_groups import index_rollouts
from grupo.training.update.collate import collate, positions_in_batch


def make_response(length: int, observed: int = 0, **fields: object) -> Response:
    """A response of `length` items with log-prob -1 each, after `observed` observation tokens."""
    return Response((7,) * length, (-1.0,) * length, (3,) * observed, **fields)


def collate_rollouts(*rollouts: Rollout) -> Batch:
    group = Group(Task("0", "?"), tuple(rollouts))
    return collate([group], lambda rows: [len(row.turns) for row in rows])


def make_rollout(*responses: Response, **fields: object) -> Rollout:
    return Rollout(tuple(("", response) for response in responses), 1.0, **fields)


def signal(batch: Batch, name: str) -> Sequence[Sequence[float]]:
    return batch.signals[name].tolist()


def test_later_observations_are_masked():
    batch = collate_rollouts(
        make_rollout(make_response(2, observed=5), make_response(1, observed=2))
    )
    assert batch.mask.int().tolist() == [[1, 1, 0, 0, 1]]
    assert batch.turn.tolist() == [[0, 0, 0, 0, 1]]
    assert batch.old_logp.tolist() == [[-1, -1, 0, 0, -1]]


def test_forced_tokens_have_columns_but_are_masked():
    forced = make_response(1, in_loss=False, sampled=False)
    batch = collate_rollouts(make_rollout(make_response(2, observed=5), forced, make_response(1)))
    assert batch.mask.int().tolist() == [[1, 1, 0, 1]]
    assert signal(batch, "sampled") == [[1, 1, 0, 1]]
    assert batch.lengths.tolist() == [3]


def test_a_turn_lasts_until_the_next_observation():
    batch = collate_rollouts(
        make_rollout(
            make_response(1, observed=2),
            make_response(1),
            make_response(1, observed=1),
            make_response(1),
        )
    )
    assert batch.turn.tolist() == [[0, 0, 0, 1, 1]]


def test_each_context_is_a_row_of_its_own():
    three_contexts = make_rollout(
        make_response(2, observed=4),
        make_response(3, observed=4, resets_context=True),
        make_response(1, observed=5, resets_context=True),
    )
    batch = collate_rollouts(make_rollout(make_response(1, observed=1)), three_contexts)
    assert batch.rollout.tolist() == [0, 1, 1, 1]
    assert batch.mask.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert batch.turn.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1], [2, 0, 0]]
    assert batch.inputs == [1, 1, 1, 1]
    assert batch.lengths.tolist() == [1, 6]


def test_observations_within_a_later_context_are_masked_in_its_row():
    batch = collate_rollouts(
        make_rollout(
            make_response(1, observed=4),
            make_response(1, observed=4, resets_context=True),
            make_response(1, observed=2),
        )
    )
    assert batch.mask.int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 1]]


def test_a_first_response_that_resets_the_context_adds_no_row():
    batch = collate_rollouts(make_rollout(make_response(1, observed=4, resets_context=True)))
    assert batch.rollout.tolist() == [0]
    assert collate_rollouts(make_rollout()).rollout.tolist() == [0]


def test_rows_of_a_forked_rollout_are_one_sequence():
    fork = {"resets_context": True, "rewrites_history": True}
    forked = make_rollout(
        make_response(2), make_response(1, **fork), make_response(3, resets_context=True)
    )
    batch = collate_rollouts(forked, make_rollout(make_response(1)))
    assert batch.rollout.tolist() == [0, 0, 0, 1]
    first, same, restarted, other = batch.sequence.tolist()
    assert first == same
    assert len({first, restarted, other}) == 3
    assert batch.sequence_lengths.tolist() == [3, 3, 3, 1]


def test_step_values_follow_their_responses_into_every_row():
    rollout = make_rollout(
        make_response(2, observed=1),
        make_response(1, observed=2),
        make_response(1, observed=1, resets_context=True),
        step_values={"state": (1.0, 2.0, 3.0, 4.0)},
    )
    batch = collate_rollouts(rollout)
    assert signal(batch, "step/state") == [[1, 2, 0, 0, 3], [4, 0, 0, 0, 0]]


def test_missing_step_values_are_0():
    rollout = make_rollout(
        make_response(2),
        make_response(2, resets_context=True),
        step_values={"state": (1.0, 2.0, 3.0)},
    )
    assert signal(collate_rollouts(rollout), "step/state") == [[1, 2], [3, 0]]


def test_responses_of_another_context_are_marked():
    batch = collate_rollouts(make_rollout(make_response(1, off_context=True), make_response(1)))
    assert signal(batch, "off_context") == [[1, 0]]


def test_rollouts_of_a_step_are_found_in_the_batch_by_their_index():
    rollouts = [make_rollout(make_response(length)) for length in (1, 2, 3, 4)]
    groups = [Group(Task(f"{i}", "?"), tuple(rollouts[2 * i : 2 * i + 2])) for i in range(2)]
    first, second = index_rollouts(groups)
    # a filter drops rollouts 0 and 2, replaces rollout 3 by an equal one, and adds a replay
    kept = [
        Group(Task("1", "?"), (replace(second.rollouts[1], source="copied"), rollouts[0])),
        Group(Task("0", "?"), first.rollouts[1:]),
    ]
    positions = positions_in_batch(kept)
    assert positions == {3: 0, 1: 2}
    lengths = collate(kept, lambda rows: None).lengths.tolist()
    assert {index: lengths[position] for index, position in positions.items()} == {3: 4, 1: 2}
