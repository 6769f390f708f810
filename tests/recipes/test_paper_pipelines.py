"""RAIF, PRefLexOR, AIDSAFE, DianJin-R1 and the Fellowship: numbers of the catalogue, short runs."""

import asyncio
import json
import sys
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.core.types import Group, Response, Rollout, Task
from grupo.pipeline import Pipeline, run_pipeline
from grupo.rewards import PerRolloutReward
from grupo.storage.pipeline_dirs import stage_folders
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT
from tests.helpers.preference_batches import loss_and_gradient, pair_batch
from tests.helpers.scripted_actor import TASK, Once, script, texts

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def short(stage: Any) -> Any:
    """The stage with two steps, or data of few tasks."""
    few = replace(stage.recipe.evaluation, attempts=1, every=0)
    recipe = stage.recipe.replace(max_steps=2, prompts_per_step=4, evaluation=few)
    return replace(stage, recipe=recipe, **({"count": 30} if stage.output_name else {}))


def run_short(pipeline: Pipeline, folder: Path) -> Path:
    """Run a pipeline with short stages, all of which end, and return its folder."""
    root = run_pipeline(Pipeline(tuple(map(short, pipeline.stages))), folder / "run")
    finished = [stage.name for stage in stage_folders(root) if stage.is_finished]
    assert finished == [stage.name for stage in pipeline.stages]
    return root


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a collection."""
    return [json.loads(line) for line in (folder / "tasks.jsonl").read_text().splitlines()]


def answered(text: str, *, forced: bool = False) -> Rollout:
    """A rollout with a text, whose thoughts may have been forced."""
    response = Response((1,), (0.0,), text=text, in_loss=not forced)
    return Rollout((("?", response),))


# RAIF


def four_constraints() -> Task:
    """Words a and b, not c, and an end with d."""
    columns = {
        "instruction_id_list": [
            "keywords:existence",
            "keywords:existence",
            "keywords:forbidden_words",
            "startend:end_checker",
        ],
        "kwargs": [
            {"keywords": ["a"]},
            {"keywords": ["b"]},
            {"forbidden_words": ["c"]},
            {"end_phrase": "d"},
        ],
        "reference_met": 3,
    }
    return Task("k", "?", columns=columns)


@pytest.mark.parametrize(
    ("text", "forced", "score", "met", "scored"),
    [
        ("<think>x</think><answer>a d</answer>", False, 1.75, 3, 1),
        ("<think>x</think><answer>a b d</answer>", False, 3.0, 4, 1),
        ("<think>x</think><answer>c</answer>", False, -1.0, 0, 1),
        ("<answer>a b d</answer>", False, -3.0, 0, 0),
        ("<think>x</think><answer>a b d</answer> so", False, -3.0, 0, 0),
        ("<think> </think><answer>a b d</answer>", False, -1.0, 0, 0),
        ("<think></think><answer>a d</answer>", True, 1.75, 3, 1),
    ],
)
def test_the_reward_of_raif(text, forced, score, met, scored, load):
    found = load("raif").ConstraintReward().score(four_constraints(), answered(text, forced=forced))
    assert (found["score"], found["met"], found["scored"]) == (score, met, scored)
    assert found["reference"] == 3


class Right(PerRolloutReward):
    """1 if the text contains a 4."""

    def score(self, task, rollout):
        return float("4" in rollout.text)


@pytest.mark.parametrize(
    ("answer", "score"), [(r"\boxed{4}", 3.0), (r"\boxed{5}", -0.5), ("4", -1.0)]
)
def test_the_reward_of_mathematical_tasks(answer, score, load):
    reward = load("raif").MathReward(Right())
    rollout = answered(f"<think>x</think><answer>{answer}</answer>")
    assert asyncio.run(reward.score(Task("k", "?"), rollout)) == score
    malformed = answered(answer)
    assert asyncio.run(reward.score(Task("k", "?"), malformed)) == score - 2


def contrasted(raif, *, met, answer, thinks, scored=None, reference=3.0):
    """The mask of a group."""
    n = len(met)
    terms = {
        "thinks": thinks,
        "constraints/met": met,
        "constraints/answer": answer,
        "constraints/scored": scored or [1.0] * n,
        "constraints/reference": [reference] * n,
    }
    batch = make_batch([0] * n, reward_terms=terms, signals={"sampled": [[1.0]] * n})
    return raif.BeatsNoThoughts()(batch).flatten().tolist()


def test_thoughts_that_meet_fewer_constraints_than_none_are_masked(load):
    kept = contrasted(
        load("raif"), met=[2, 3, 4, 3], answer=[0.5, 0.75, 2, 0.75], thinks=[1.0, 1, 1, 0]
    )
    assert kept == [False, True, True, False]


def test_malformed_rollouts_stay(load):
    kept = contrasted(
        load("raif"), met=[0, 3, 3], answer=[-2, 0.75, 0.75], thinks=[1.0, 1, 0], scored=[0.0, 1, 1]
    )
    assert kept == [True, True, False]


def test_a_group_below_all_answers_without_thoughts_is_dropped_unless_it_is_uniform(load):
    raif = load("raif")
    better = {"thinks": [1.0, 1, 0, 0], "reference": 0.0}
    assert not any(contrasted(raif, met=[1, 2, 3, 4], answer=[0.25, 0.5, 0.75, 2], **better))
    uniform = contrasted(raif, met=[2, 2, 3, 4], answer=[0.5, 0.5, 0.75, 2], **better)
    assert uniform == [True, True, False, False]
    as_good = contrasted(raif, met=[1, 3, 3, 4], answer=[0.25, 0.75, 0.75, 2], **better)
    assert as_good == [True, True, False, False]


def test_demonstrations_are_no_answers_without_thoughts(load):
    terms = {
        "thinks": [1.0, 1.0, 0.0],
        "constraints/met": [1, 2, 4],
        "constraints/answer": [0.25, 0.5, 2],
        "constraints/scored": [1.0] * 3,
        "constraints/reference": [0.0] * 3,
    }
    signals = {"sampled": [[1.0], [1.0], [0.0]]}
    batch = make_batch([0] * 3, reward_terms=terms, signals=signals)
    assert load("raif").BeatsNoThoughts()(batch).flatten().tolist() == [True, True, False]


def test_a_masked_rollout_has_no_policy_loss_and_keeps_its_kl_divergence(load):
    raif = load("raif")
    terms = {
        "thinks": [1.0, 1.0],
        "constraints/met": [2, 3],
        "constraints/answer": [0.5, 0.75],
        "constraints/scored": [1.0, 1.0],
        "constraints/reference": [3.0, 3.0],
    }
    ref = {"logp@ref": [[-2.0], [-2.0]], "sampled": [[1.0], [1.0]]}
    batch = make_batch([0, 0], advantage=[1.0, 1.0], reward_terms=terms, signals=ref)
    loss = raif.raif(kl_coef=1.0, sft_coef=0.0).loss(perturb_logp(batch, [[0.0], [0.0]]), batch)
    kl = exp(-1) + 1 - 1  # k3 of log(pi_ref / pi) = -1
    assert loss.flatten().tolist() == pytest.approx([kl, kl - 1.0])


def test_a_quarter_of_a_group_is_forced_to_answer_without_thoughts(load):
    sampler = load("raif").WithoutThoughts(8, prefix="<>")
    group = asyncio.run(sampler(TASK, Once(), script(lambda context, key: ".")))
    assert texts(group) == ["."] * 6 + ["<>."] * 2
    assert [rollout.reward_terms["thinks"] for rollout in group.rollouts] == [1.0] * 6 + [0.0] * 2
    batch = collate([group], lambda rows: {})
    assert batch.mask[7].tolist() == [False, False, True]


def test_a_group_without_quarters_is_refused(load):
    with pytest.raises(ConfigError, match=r"group_size: 6. Allowed: a multiple of 4"):
        load("raif").WithoutThoughts(6)


def test_the_sft_part_is_the_mean_over_solutions(load):
    """A solution of two tokens with log-probabilities -1 adds 1, whatever the policy's part."""
    method = load("raif").raif(kl_coef=0.0, contrast=False)
    signals = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}
    batch = make_batch([0, 0, 0], [1.0, 1.0, 0.0], length=[1, 1, 2], signals=signals)
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0]] * 3)
    assert (method.aggregation(batch) * method.loss(pi, batch)).sum().item() == pytest.approx(1.0)


def test_demonstrated_texts_state_constraints_that_solutions_meet(load):
    raif, words = load("raif"), sys.modules["word_constraints"]
    reward = raif.ConstraintReward()
    for task in words.tasks():
        assert words.read_constraints(task).prompt == task.prompt
        assert reward.score(task, answered(task.columns["solution"]))["score"] == 3.0
    kept = [reward.score(t, answered(x))["score"] for t in words.tasks()[:50]
            for x in words.demonstrations(t)]  # fmt: skip
    assert 0 < sum(score == 3.0 for score in kept) < len(kept)


@pytest.mark.slow
def test_raif_runs(load, tmp_path):
    raif = load("raif")
    model = str(raif.save_model(tmp_path, steps=40))
    root = run_short(raif.pipeline(model), tmp_path)
    assert all(0 <= row["reference_met"] <= 6 for row in rows_of(root / "reference"))


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
