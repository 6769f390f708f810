"""PRefLexOR, AIDSAFE, DianJin-R1 and the Fellowship: numbers of the catalogue, short runs."""

import asyncio
import sys
from dataclasses import replace
from math import exp, log
from typing import Any

import pytest
import torch

from grupo.core.types import Group, Response, Rollout, Task
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.preference_batches import loss_and_gradient, pair_batch
from tests.helpers.short_pipelines import answered, load, rows_of, run_short

__all__ = ["load"]  # a fixture

# PRefLexOR


def test_orpo_of_the_catalogue(load):
    # p_w = 1/2, p_l = 1/4: 0.6931 + 0.1 0.2877
    batch = pair_batch([0.0, 0.0], logp=-log(4))
    method = load("preflexor").preflexor_orpo("sheets.txt")
    loss, _ = loss_and_gradient(method, batch, change=[log(2), 0.0])
    assert loss == pytest.approx(0.7219, abs=5e-5)


def test_stage_2_is_the_divergence_of_exo(load):
    # beta z = 1: q = sigmoid(1) = 0.7311, p = (0.995, 0.005)
    q = 1 / (1 + exp(-1))
    expected = q * log(q / 0.995) + (1 - q) * log((1 - q) / 0.005)
    loss, _ = loss_and_gradient(load("preflexor").preflexor_exo(), pair_batch([1.0, -1.0]))
    assert loss == pytest.approx(expected)


def test_changing_thoughts_leaves_the_loss_of_stage_2_unchanged(load):
    method = load("preflexor").preflexor_exo()
    batch = make_batch([0, 0], [1.0, 0.0], length=[2, 2])
    batch = replace(batch, mask=torch.tensor([[False, True]] * 2))

    def loss(*thoughts: float) -> float:
        pi = perturb_logp(batch, [[thoughts[0], 0.5], [thoughts[1], -0.5]])
        return (method.aggregation(batch) * method.loss(pi, batch)).sum().item()

    assert loss(0.0, 0.0) == loss(2.0, -3.0) == loss(-1.0, 1.0)


@pytest.mark.slow
def test_every_question_is_answered_by_the_sheet_that_is_retrieved(load, tmp_path):
    load("preflexor")
    sheets: Any = sys.modules["fact_sheets"]
    retrieve = sheets.Retrieved(str(sheets.write_corpus(tmp_path)))
    tasks = list(sheets.questions())
    assert len(sheets.SHEETS) == 300
    assert all(task.reference_answer in retrieve(task).split() for task in tasks)


@pytest.mark.slow
def test_preflexor_runs(load, tmp_path):
    preflexor = load("preflexor")
    sheets: Any = sys.modules["fact_sheets"]
    model, corpus = str(sheets.save_model(tmp_path, steps=250)), str(sheets.write_corpus(tmp_path))
    root = run_short(preflexor.pipeline(model, corpus), tmp_path)
    assert all(row["chosen_reward"] > row["rejected_reward"] for row in rows_of(root / "pairs"))


# AIDSAFE


@pytest.mark.parametrize(
    ("topic", "answer", "violates", "refuses", "obeys"),
    [
        ("tea", "red blue", 1, 0, 0),  # refuse
        ("tea", "sorry", 0, 1, 1),
        ("rain", "red blue", 1, 0, 0),  # never blue
        ("rain", "red", 0, 0, 1),
        ("rain", "sorry", 0, 1, 0),
        ("debt", "red blue", 0, 0, 1),  # free
        ("debt", "sorry", 0, 1, 0),
    ],
)
def test_rules_are_checked_by_code(topic, answer, violates, refuses, obeys, load):
    load("aidsafe")
    book: Any = sys.modules["rule_book"]
    task, rollout = book.request(topic, ["red", "blue"]), answered(f"<think>x</think>{answer}")
    checks = (book.violates, book.refuses, book.obeys)
    assert [check(task, rollout) for check in checks] == [violates, refuses, obeys]


def test_forbidden_and_allowed_requests_are_told_apart(load):
    load("aidsafe")
    book: Any = sys.modules["rule_book"]
    kinds = [(book.is_forbidden(task), book.is_allowed(task)) for task in book.TESTED]
    assert {*kinds} == {(True, False), (False, True), (False, False)}


def test_thoughts_against_the_rules_or_beside_the_topic_are_dropped(load):
    aidsafe = load("aidsafe")
    task = sys.modules["rule_book"].request("tea", ["red", "blue"])
    kept = aidsafe.keep_rules(task, ["tea refuse", "tea free", "rain free", "tea refuse"])
    assert kept == ["tea refuse"]


@pytest.mark.slow
def test_aidsafe_runs(load, tmp_path):
    aidsafe = load("aidsafe")
    root = run_short(aidsafe.pipeline(str(aidsafe.save_model(tmp_path, steps=150))), tmp_path)
    for row in rows_of(root / "deliberations"):
        assert row["chosen"] == row["completion"] != row["rejected"]
        assert row["chosen"].startswith("<think>")


# DianJin-R1


@pytest.mark.parametrize(
    ("kind", "gold", "text", "score"),
    [
        ("most", "B", "<think>..</think><answer>B</answer>", 2),
        ("most", "B", "<think>..</think><answer>B</answer> so B", 1),
        ("most", "B", "<think>..</think><answer>C</answer>", 1),
        ("most", "B", "C", 0),
        ("most", "B", "<answer>B</answer>", 1),
        ("ratio", "1.5", "<think>..</think><answer>1.54</answer>", 2),
        ("ratio", "1.5", "<think>..</think><answer>1.6</answer>", 1),
        ("assets", "9", "<think>..</think><answer>9.0</answer>", 2),
        ("covered", "yes", "<think>..</think><answer>Yes</answer>", 2),
        ("covered", "yes", "<think>..</think><answer>no</answer>", 1),
        ("covered", "yes", "<think>a</think><think>b</think><answer>yes</answer>", 1),
    ],
)
def test_the_reward_of_dianjin_r1(kind, gold, text, score, load):
    dianjin = load("dianjin_r1")
    task = Task("k", "?", gold, columns={"kind": kind})
    env = dianjin.base_recipe("model").env
    (result,) = asyncio.run(env.score(task, [answered(text)]))
    assert result.reward == score


def test_vouchers_are_balanced_and_assets_equal_the_other_side(load):
    load("dianjin_r1")
    ledgers: Any = sys.modules["ledgers"]
    import random

    for seed in range(50):
        ledger = ledgers.draw_ledger(random.Random(seed))
        assert ledger.execute(ledgers.UNBALANCED).fetchall() == []
        state = ledgers.balances(ledger)
        assert state["cash"] + state["stock"] == state["debt"] + state["equity"]


@pytest.mark.slow
def test_held_out_statements_have_other_shapes(load):
    load("dianjin_r1")
    ledgers: Any = sys.modules["ledgers"]

    def shapes(tasks):
        statements = (str(task.prompt).partition(" |")[0].split() for task in tasks)
        return {tuple(words[::2]) for words in statements}

    trained, held_out = shapes(ledgers.training_tasks()), shapes(ledgers.held_out_tasks())
    assert len(trained) == 4
    assert len(held_out) == 2
    assert not trained & held_out


@pytest.mark.slow
def test_dianjin_r1_runs(load, tmp_path):
    dianjin = load("dianjin_r1")
    run_short(dianjin.pipeline(str(dianjin.save_model(tmp_path / "model"))), tmp_path)


# The Fellowship of the LLMs


@pytest.mark.slow
def test_a_workflow_writes_both_data_sets(load, tmp_path):
    fellowship = load("fellowship")
    sums: Any = sys.modules["reviewed_sums"]
    model = str(sums.save_model(tmp_path, steps=80))
    root = run_short(fellowship.pipeline(model, fellowship.PREFERENCES["jury"]), tmp_path)
    drafts, reviews = rows_of(root / "drafts"), rows_of(root / "reviews")
    assert {row["prompt"] for row in drafts} <= {*sums.SUMS}
    assert all(row["prompt"].endswith(" ok ? ") for row in reviews)
    assert all(row["chosen"] != row["rejected"] for row in (*drafts, *reviews))


def test_a_debater_may_join_the_speaker_before_it(load):
    load("fellowship")
    sums: Any = sys.modules["reviewed_sums"]
    right, wrong = (answered(text) for text in ("5", "6"))
    task = Task("2+3=", "2+3=", "5")
    firm, weak = sums.Persuadable(sums.closer, 1.0), sums.Persuadable(sums.closer, 0.0)
    against = (sums.Statement(1.0), sums.Statement(0.0))
    assert [x(task, right, wrong, against).vote for x in (firm, weak)] == [1.0, 0.0]
    assert weak(task, right, wrong, ()).vote == 1.0


def test_the_rows_of_reviews_have_the_prompt_of_the_review():
    from grupo.pipeline import best_against_worst_in_context

    rollouts = [
        replace(Rollout((("Q5 ok?", Response((1,), (0.0,), text=text)),)), reward=reward)
        for text, reward in (("yes", 0.0), ("no", 1.0))
    ]
    group = Group(Task("k", "Q"), tuple(rollouts))
    (row,) = best_against_worst_in_context(group.rollouts, bool)
    assert (row["prompt"], row["chosen"], row["rejected"]) == ("Q5 ok?", "no", "yes")
    equal = [replace(rollout, reward=1.0) for rollout in rollouts]
    assert best_against_worst_in_context(equal, bool) == []
