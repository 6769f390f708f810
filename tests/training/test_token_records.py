"""What the journal of actions holds, by hand."""

import torch

from grupo.core.batch import EMPTY_BATCH, Batch
from grupo.core.types import Action, Group, Rollout, Task
from grupo.storage import tensor_text
from grupo.training.collate import action_spans
from grupo.training.token_records import Trace, token_records

TASK = Task("sum", "2 + 2 =")


def spell(rollout: Rollout) -> list[list[str]]:
    return [[chr(part) for part in action.items] for _, action in rollout.turns]


def said(text: str, *logp: float, **more) -> Action:
    return Action(tuple(map(ord, text)), logp or (-0.5,) * len(text), text=text, **more)


def two_turns() -> Rollout:
    """It says "ab", hears three parts, is forced to say "c" and says "d"."""
    heard, forced = (
        said("c", 0.0, seen=(1, 2, 3), sampled=False, learned=False),
        said("d", stream=7),
    )
    return Rollout(
        (("2 + 2 =", said("ab", -0.25, -1.5, seen=(9,), stream=5)), ("no", heard), ("", forced))
    )


def batch_of(*rollouts: Rollout) -> Batch:
    """Two rows of six columns; the second rollout has the first two alone."""
    mask = torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1]]).bool()
    batch = Batch.of(
        torch.tensor([0.0, 1.0], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor([0, 1]),
        mask=mask,
        old_logp=torch.zeros(2, 6),
        inputs={"row": torch.tensor([0, 1])},
    )
    advantage = torch.tensor([[-1.0, -1.0, 0, 0, 0, 0], [0.5, 0.25, 9, 9, 9, 2.0]])
    return batch.with_advantage(lambda x, _: advantage)


def test_the_columns_of_an_action_are_those_it_was_collated_into():
    # the first: columns 0 and 1; the world's three columns; then one for each of the others
    assert action_spans(two_turns()) == [(0, slice(0, 2)), (0, slice(5, 6)), (0, slice(6, 7))]


def test_where_a_context_begins_anew_columns_count_from_its_first_action():
    anew = Rollout((("?", said("ab")), ("", said("c", seen=(1, 2), begins=True))))
    assert action_spans(anew) == [(0, slice(0, 2)), (1, slice(0, 1))]


def short() -> Rollout:
    return Rollout((("2 + 2 =", said("ef", stream=8)),), reward=0.0)


def three_parts() -> Rollout:
    """As `two_turns`, without its last action: "ab", three parts heard, "c" learned."""
    (first, (_, second), _) = two_turns().turns
    return Rollout((first, ("no", said("c", -2.0, seen=second.observation, stream=6))))


def made(batch: Batch, trace: Trace):
    kept = Group(TASK, (short(), three_parts()))
    return token_records(3, [kept], [kept], batch, trace, spell)


def test_every_action_has_its_parts_and_what_is_known_of_each():
    one, other = made(batch_of(), Trace())
    assert (one["step"], one["group"], len(one["actions"])) == (3, 0, 1)
    assert one["actions"][0]["advantage"] == -1.0  # one number for all that are alike
    first, second = other["actions"]
    assert (first["items"], first["logp"], first["advantage"]) == (
        ["a", "b"],
        [-0.25, -1.5],
        [0.5, 0.25],
    )
    assert "observation" not in first  # the prompt, which the journal of rollouts has
    assert (second["observation"], second["items"], second["advantage"]) == ("no", ["c"], 2.0)
    assert "entropy" not in first


def test_what_was_said_at_the_last_update_is_kept_and_clipped_parts_are_marked():
    batch, trace = batch_of(), Trace()
    numbers = torch.arange(12.0).reshape(2, 6)
    for times in (1.0, 0.1):
        low = torch.tensor([[False] * 6, [True, False, True, False, False, True]])
        trace(
            batch, {"entropy": times * numbers, "ratio": numbers * 0, "clip_frac/low": low.double()}
        )
    _, other = made(batch, trace)
    first, second = other["actions"]
    assert first["entropy"] == [0.6, 0.7]  # 0.1 x 6 and 0.1 x 7: columns 0 and 1 of row 1
    assert (first["ratio"], first["clipped"]) == (0.0, [0])
    assert (second["entropy"], second["clipped"]) == (1.1, [0])  # column 5 of row 1


def test_a_minibatch_tells_of_its_rows_by_their_numbers_in_the_batch():
    batch, trace = batch_of(), Trace()
    trace(batch.select_rows(torch.tensor([1])), {"entropy": torch.ones(1, 1)})
    assert list(trace) == [1]
    one, other = made(batch, trace)
    assert "entropy" not in one["actions"][0]
    assert other["actions"][0]["entropy"] == 1.0


def test_what_was_forced_or_not_learned_from_says_so():
    group = Group(TASK, (two_turns(),))
    (record,) = token_records(0, [group], [], EMPTY_BATCH, Trace(), spell)
    first, forced, last = record["actions"]
    assert first["advantage"] is last["advantage"] is None
    assert (forced["sampled"], forced["in_loss"], forced["logp"]) == (False, False, None)
    assert "sampled" not in first


def test_rollouts_that_share_an_action_have_its_number_in_common():
    trunk = said("ab", stream=1)
    leaves = [
        Rollout((("2 + 2 =", trunk), ("", said(text, stream=stream))))
        for text, stream in (("c", 2), ("d", 3))
    ]
    alone = Rollout((("2 + 2 =", said("ab", stream=4)),))
    group = Group(TASK, (*leaves, alone))
    found = token_records(0, [group], [], EMPTY_BATCH, Trace(), spell)
    assert [[a["drawn"] for a in r["actions"]] for r in found] == [[0, 1], [0, 2], [3]]


def test_a_picture_is_kept_as_browsers_show_it():
    made = tensor_text.encode_tensor(torch.zeros(3, 2, 2, dtype=torch.uint8))
    group = Group(TASK, (Rollout((("2 + 2 =", said("a", made=made)),)),))
    (record,) = token_records(0, [group], [], EMPTY_BATCH, Trace(), spell)
    assert record["actions"][0]["picture"].startswith("data:image/png;base64,")
