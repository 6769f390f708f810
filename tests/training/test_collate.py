"""From ragged rollouts to rows: contexts, turns, and what is not to be learned."""

from collections.abc import Sequence

from grupo.core.batch import Batch
from grupo.core.types import Action, Group, Rollout, Task
from grupo.training.collate import collate


def act(length: int, seen: int = 0, **more: object) -> Action:
    """An action of so many parts, each with log-probability -1, after so many that were heard."""
    return Action((7,) * length, (-1.0,) * length, (3,) * seen, **more)  # pyright: ignore


def rows_of(*rollouts: Rollout) -> Batch:
    group = Group(Task("0", "?"), tuple(rollouts))
    return collate([group], lambda rows: [len(row.turns) for row in rows])


def rollout(*actions: Action, **more: object) -> Rollout:
    return Rollout(tuple(("", action) for action in actions), 1.0, **more)  # pyright: ignore


def numbers(batch: Batch, name: str) -> Sequence[Sequence[float]]:
    return batch.signals[name].tolist()


def test_what_the_world_says_later_is_masked():
    batch = rows_of(rollout(act(2, seen=5), act(1, seen=2)))
    assert batch.mask.int().tolist() == [[1, 1, 0, 0, 1]]
    assert batch.turn.tolist() == [[0, 0, 0, 0, 1]]
    assert batch.old_logp.tolist() == [[-1, -1, 0, 0, -1]]


def test_what_the_policy_was_forced_to_say_is_there_but_not_learned():
    batch = rows_of(rollout(act(2, seen=5), act(1, learned=False, sampled=False), act(1)))
    assert batch.mask.int().tolist() == [[1, 1, 0, 1]]
    assert numbers(batch, "sampled") == [[1, 1, 0, 1]]
    assert batch.lengths.tolist() == [3]


def test_a_turn_goes_on_until_the_world_speaks():
    batch = rows_of(rollout(act(1, seen=2), act(1), act(1, seen=1), act(1)))
    assert batch.turn.tolist() == [[0, 0, 0, 1, 1]]


def test_a_context_that_begins_anew_is_a_row_of_its_own():
    three = rollout(act(2, seen=4), act(3, seen=4, begins=True), act(1, seen=5, begins=True))
    batch = rows_of(rollout(act(1, seen=1)), three)
    assert batch.rollout.tolist() == [0, 1, 1, 1]
    assert batch.mask.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert batch.turn.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1], [2, 0, 0]]
    assert batch.inputs == [1, 1, 1, 1]
    assert batch.lengths.tolist() == [1, 6]


def test_what_is_heard_within_a_row_of_its_own_is_masked_there():
    batch = rows_of(rollout(act(1, seen=4), act(1, seen=4, begins=True), act(1, seen=2)))
    assert batch.mask.int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 1]]


def test_a_first_action_begins_no_second_row():
    assert rows_of(rollout(act(1, seen=4, begins=True))).rollout.tolist() == [0]
    assert rows_of(rollout()).rollout.tolist() == [0]


def test_marks_go_to_the_actions_they_are_of_in_whatever_row_these_are():
    marks = {"state": (1.0, 2.0, 3.0, 4.0)}
    batch = rows_of(
        rollout(act(2, seen=1), act(1, seen=2), act(1, seen=1, begins=True), marks=marks)
    )
    assert numbers(batch, "step/state") == [[1, 2, 0, 0, 3], [4, 0, 0, 0, 0]]


def test_marks_that_are_missing_are_0():
    batch = rows_of(rollout(act(2), act(2, begins=True), marks={"state": (1.0, 2.0, 3.0)}))
    assert numbers(batch, "step/state") == [[1, 2], [3, 0]]


def test_where_an_action_was_drawn_in_another_context_is_told():
    batch = rows_of(rollout(act(1, moved=True), act(1)))
    assert numbers(batch, "off_context") == [[1, 0]]
