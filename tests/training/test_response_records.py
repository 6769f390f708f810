"""The records of `responses.jsonl`, by hand."""

from dataclasses import replace

import torch

from grupo.core.batch import EMPTY_BATCH, Batch
from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.storage import tensor_text
from grupo.testing.smoke.run import echo_recipe
from grupo.training import trainer as trainer_module
from grupo.training.collect.collected_groups import index_rollouts
from grupo.training.start import create_trainer
from grupo.training.update.collate import response_spans
from grupo.training.update.records import ActionSignals, response_records

TASK = Task("sum", "2 + 2 =")


def tokens_as_text(rollout: Rollout) -> list[list[str]]:
    return [[chr(item) for item in response.items] for _, response in rollout.turns]


def make_response(text: str, *logp: float, **fields) -> Response:
    return Response(tuple(map(ord, text)), logp or (-0.5,) * len(text), text=text, **fields)


def two_turns() -> Rollout:
    """Generates "ab", reads three observation tokens, is forced to "c", generates "d"."""
    first = make_response("ab", -0.25, -1.5, observation=(9,), rng_key=5)
    forced = make_response("c", 0.0, observation=(1, 2, 3), sampled=False, in_loss=False)
    last = make_response("d", rng_key=7)
    return Rollout((("2 + 2 =", first), ("no", forced), ("", last)))


def batch_of(*rollouts: Rollout) -> Batch:
    """Two rows of six columns; the first rollout has responses in the first two only."""
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


def test_response_spans_are_the_columns_of_the_collated_batch():
    # two columns, three observation columns, then one column for each of the others
    assert response_spans(two_turns()) == [(0, slice(0, 2)), (0, slice(5, 6)), (0, slice(6, 7))]


def test_columns_start_again_in_each_context():
    two_contexts = Rollout(
        (
            ("?", make_response("ab")),
            ("", make_response("c", observation=(1, 2), resets_context=True)),
        )
    )
    assert response_spans(two_contexts) == [(0, slice(0, 2)), (1, slice(0, 1))]


def short() -> Rollout:
    return Rollout((("2 + 2 =", make_response("ef", rng_key=8)),), reward=0.0)


def three_parts() -> Rollout:
    """As `two_turns` without its last response: "ab", three observation tokens, "c" trained on."""
    (first, (_, second), _) = two_turns().turns
    return Rollout(
        (first, ("no", make_response("c", -2.0, observation=second.observation, rng_key=6)))
    )


def records_of(batch: Batch, action_signals: ActionSignals):
    (kept,) = index_rollouts([Group(TASK, (short(), three_parts()))])
    return response_records(3, [kept], [kept], batch, action_signals, tokens_as_text)


def test_every_response_has_its_items_and_their_numbers():
    one, other = records_of(batch_of(), ActionSignals())
    assert (one["step"], one["group"], len(one["responses"])) == (3, 0, 1)
    assert one["responses"][0]["advantage"] == -1.0  # a single number stands for equal ones
    first, second = other["responses"]
    assert (first["items"], first["logp"], first["advantage"]) == (
        ["a", "b"],
        [-0.25, -1.5],
        [0.5, 0.25],
    )
    assert "observation" not in first  # the prompt is in rollouts.jsonl
    assert (second["observation"], second["items"], second["advantage"]) == ("no", ["c"], 2.0)
    assert "entropy" not in first


def test_signals_of_the_last_update_are_kept_and_clipped_items_are_listed():
    batch, action_signals = batch_of(), ActionSignals()
    numbers = torch.arange(12.0).reshape(2, 6)
    for times in (1.0, 0.1):
        low = torch.tensor([[False] * 6, [True, False, True, False, False, True]])
        action_signals(
            batch, {"entropy": times * numbers, "ratio": numbers * 0, "clip_frac/low": low.double()}
        )
    _, other = records_of(batch, action_signals)
    first, second = other["responses"]
    assert first["entropy"] == [0.6, 0.7]  # 0.1 x 6 and 0.1 x 7: columns 0 and 1 of row 1
    assert (first["ratio"], first["clipped"]) == (0.0, [0])
    assert (second["entropy"], second["clipped"]) == (1.1, [0])  # column 5 of row 1


def test_the_trace_identifies_rows_of_a_minibatch_by_their_number_in_the_batch():
    batch, action_signals = batch_of(), ActionSignals()
    action_signals(batch.select_rows(torch.tensor([1])), {"entropy": torch.ones(1, 1)})
    assert list(action_signals) == [1]
    one, other = records_of(batch, action_signals)
    assert "entropy" not in one["responses"][0]
    assert other["responses"][0]["entropy"] == 1.0


def test_forced_responses_and_untrained_rollouts_are_marked():
    group = Group(TASK, (two_turns(),))
    (record,) = response_records(0, [group], [], EMPTY_BATCH, ActionSignals(), tokens_as_text)
    first, forced, last = record["responses"]
    assert first["advantage"] is last["advantage"] is None
    assert (forced["sampled"], forced["in_loss"], forced["logp"]) == (False, False, None)
    assert "sampled" not in first


def test_rollouts_that_share_an_response_have_the_same_response_id():
    shared = make_response("ab", rng_key=1)
    leaves = [
        Rollout((("2 + 2 =", shared), ("", make_response(text, rng_key=stream))))
        for text, stream in (("c", 2), ("d", 3))
    ]
    separate = Rollout((("2 + 2 =", make_response("ab", rng_key=4)),))
    group = Group(TASK, (*leaves, separate))
    records = response_records(0, [group], [], EMPTY_BATCH, ActionSignals(), tokens_as_text)
    assert [[a["response_id"] for a in r["responses"]] for r in records] == [[0, 1], [0, 2], [3]]


def test_an_image_is_stored_as_a_data_url():
    image = tensor_text.encode_tensor(torch.zeros(3, 2, 2, dtype=torch.uint8))
    group = Group(TASK, (Rollout((("2 + 2 =", make_response("a", image=image)),)),))
    (record,) = response_records(0, [group], [], EMPTY_BATCH, ActionSignals(), tokens_as_text)
    assert record["responses"][0]["image"].startswith("data:image/png;base64,")


def test_tokens_without_text_are_parts_of_a_character_and_other_items_are_not():
    group = Group(
        Task("a", "1"),
        (Rollout((("1", Response((5, 6, (0.5,)), (-1.0,) * 3)),)),),
    )
    texts = [["", "x", ""]]
    (record,) = response_records(1, [group], [], EMPTY_BATCH, ActionSignals(), lambda _: texts)
    assert record["responses"][0]["partial"] == [0]


def test_a_rank_that_writes_no_journals_makes_no_records(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("records of a step that another rank writes")

    monkeypatch.setattr(trainer_module, "response_records", refuse)
    trainer = create_trainer(echo_recipe(grpo()).replace(max_steps=1), tmp_path / "run")
    trainer.run_folder = replace(trainer.run_folder, is_writer=False)
    with trainer.lock:
        trainer()
    assert trainer.state.step == 1
