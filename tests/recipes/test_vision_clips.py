"""Recipes on clips: supervised examples, the shared arms and the selection of tasks."""

import sys
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.evidence.survey import TaskSurvey, write_survey
from grupo.methods.reg_grpo import AdvantageRegression
from grupo.tasks import Highest, Selected
from grupo.tasks.clips import ClipSpans
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture
def temporal(monkeypatch):
    """The script, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "temporal_r1.py")


@pytest.fixture
def arms(temporal):
    return sys.modules["clip_arms"]


def scores(arms, text, span):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return [term.reward(Task("k", "?", span), [rollout])[0] * term.weight for term in arms.TERMS]


def test_a_well_formed_span_scores_half_its_iou_and_half_the_format(arms):
    assert sum(scores(arms, arms.span_text((2, 6)), (4, 8))) == pytest.approx(2 / 3)


def test_supervised_spans_are_partly_wrong_and_partly_bare(arms):
    rng = Random(0)
    answers = [arms.SpanExamples().draw(rng).answer for _ in range(40)]
    assert {answer.startswith(arms.THOUGHTS) for answer in answers} == {True, False}
    exact = arms.SpanExamples(wrong_frac=0.0, bare_frac=0.0).draw(rng)
    assert len(exact.pictures) == 8
    assert sum(scores(arms, exact.answer, (0, 8))) > 0.5


def test_an_answer_is_six_tokens(arms):
    tokenizer = arms.MODEL.tokenizer()
    assert len(tokenizer(arms.span_text((2, 6)))["input_ids"]) == 6
    question = arms.SpanExamples().draw(Random(1)).prompt
    assert tokenizer.unk_token_id not in tokenizer(question)["input_ids"]


def survey_row(key, rewards):
    mean = sum(rewards) / len(rewards)
    std = (sum((x - mean) ** 2 for x in rewards) / len(rewards)) ** 0.5
    return TaskSurvey(key, "", "", len(rewards), 0, mean, mean, std, 1.0, 1, 0.0, 0.0)


def test_the_quarter_whose_rewards_vary_is_selected(temporal, tmp_path):
    assert temporal.PIPELINE.stages[1].recipe.tasks.selection == Highest("reward_std", 64)
    tasks = [*ClipSpans(4).load()]
    rewards = ([1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0.6, 0.5, 0.6, 0.5])
    rows = [survey_row(task.key, r) for task, r in zip(tasks, rewards, strict=True)]
    write_survey(tmp_path / "survey.parquet", [rows], {})
    selected = Selected(ClipSpans(4), str(tmp_path / "survey.parquet"), Highest("reward_std", 1))
    assert [task.key for task in selected.load()] == [tasks[1].key]


def test_reg_grpo_differs_from_grpo_in_the_method_alone(arms, temporal):
    recipe = load_module_file(FOLDER / "deepvideo_r1.py").RECIPE
    assert recipe.method.loss == AdvantageRegression()
    assert recipe.replace(method=arms.GRPO) == arms.clip_recipe(arms.GRPO, 0)
