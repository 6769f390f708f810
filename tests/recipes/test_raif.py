"""RAIF: its reward, its masks and filters, its loss, and a short run."""

import asyncio
import sys
from math import exp

import pytest

from grupo.core.types import Task
from grupo.rewards import PerRolloutReward
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script, texts
from tests.helpers.short_pipelines import answered, load, rows_of, run_short

__all__ = ["load"]  # a fixture


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
    reward = load("constraint_rewards").MathReward(Right())
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
