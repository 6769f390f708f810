"""MedS3: labels of steps, loss and choices of the head by hand; a short run of all stages."""

import asyncio
from dataclasses import dataclass, replace

import pytest
import torch

from grupo.algo.losses import StepValueLoss
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.core.interfaces import run_rollout
from grupo.pipeline import run_pipeline
from grupo.rewards import AfterMarker
from grupo.rollouts.turns import BestOf
from grupo.rollouts.turns.choices import HeadVote
from grupo.storage.pipeline_dirs import stage_folders
from grupo.testing.batches import make_batch
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT
from tests.helpers.scripted_actor import END, TASK, Once, Script, script

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def test_values_of_the_lines_are_the_labels(load):
    # three of four answers through the only line are right
    rewards = iter((1.0, 0.0, 1.0, 1.0))
    tree = replace(load("meds3").TREE, iterations=4, branches=1, max_depth=1)
    env = Once(lambda text: next(rewards))
    group = asyncio.run(tree(TASK, env, script(lambda c, k: ("a\nb" + END)[len(c) - 1])))
    (rollout,) = group.rollouts
    assert rollout.step_values["prefix_value"][2] == 0.75


def test_head_is_right_where_it_predicts_three_quarters_and_a_quarter():
    steps = {
        "step/prefix_cut": [[1.0, 0.0], [1.0, 0.0]],
        "step/prefix_value": [[0.75, 0.0], [0.25, 0.0]],
    }
    batch = make_batch([0, 0], [1.0, 0.0], length=[2, 2], signals=steps)
    values = torch.tensor([[0.75, 5.0], [0.5, 5.0]], dtype=torch.float64, requires_grad=True)
    loss = StepValueLoss(LinearHead("process"))(Signals(process=values), batch)
    (gradient,) = torch.autograd.grad(loss.sum(), values)
    assert loss.tolist() == [[0.0, 0.0], [0.0625, 0.0]]
    assert gradient.tolist() == [[0.0, 0.0], [0.5, 0.0]]


@dataclass(frozen=True)
class ValuedScript(Script):
    """A script whose head values an answer by its first letter."""

    async def predict_head(self, rollout, head):
        assert not rollout.text.endswith(END)  # read before the last token
        return {"a": 0.75, "b": 0.25, "c": 0.2}[rollout.text[0]]


def chosen(letters):
    """The answer that a vote by the head chooses among attempts with these first letters."""
    found = iter(letters)

    def next_letter(context, key):
        text = context[1:]
        return next(found) if not text else "#1"[len(text) - 1] if len(text) < 3 else END

    actor = ValuedScript(next_letter, [])
    strategy = BestOf(len(letters), HeadVote("process", AfterMarker("#")))
    return asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy)).text


def test_best_of_two_by_the_head_is_the_answer_of_value_three_quarters():
    assert chosen("ba") == "a#1."
    assert chosen("ab") == "a#1."


def test_questions_name_the_right_kind_and_answers_follow_their_reason(load):
    kinds = load("kinds")
    for task in kinds.questions(0, 40):
        assert task.reference_answer in task.columns["options"]
        assert task.columns["word"] in kinds.KINDS[task.reference_answer]
        reason, answer = kinds.reasoned(task, 1.0, careful=1.0).splitlines()
        assert reason == f"it is a {task.reference_answer}"
        assert AfterMarker(kinds.MARKER)(answer) == task.reference_answer
    assert len({task.columns["word"] for task in kinds.questions(0, 36)}) == 36


@pytest.mark.slow
def test_all_stages_run_on_a_barely_trained_model(load, tmp_path):
    recipe = load("meds3")
    model = recipe.save_model(tmp_path, steps=20)
    pipeline = recipe.stages(recipe.recipe(str(model)).replace(max_steps=2, prompts_per_step=9))
    root = run_pipeline(pipeline, tmp_path / "run")
    assert [stage.name for stage in stage_folders(root) if stage.is_finished] == pipeline.names
    values = dict(recipe.accuracies(root, pipeline, 0))
    assert len(values) == 8
    assert all(0 <= value <= 1 for value in values.values())
