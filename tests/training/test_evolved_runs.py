"""Runs with `Evolved`: the journal names the parents that a prompt shows, and executions end it."""

import pytest

from grupo.core.component import component
from grupo.core.usage import add_external_usage
from grupo.recipe import EarlyStopping, Evaluation
from grupo.report.read_run import read_metrics, read_numbered_rollouts
from grupo.rewards.base import SelfTimedReward
from grupo.training.callbacks import NullCallback
from grupo.training.start import create_trainer
from tests.helpers.training_components import env_with_reward, save_models
from tests.helpers.training_recipes import recipe


@component
class CountedLetters(SelfTimedReward):
    """The fraction of letters of an answer, which counts as one execution."""

    async def __call__(self, task, rollouts):
        add_external_usage({"executions": float(len(rollouts))})
        return [sum(map(str.isalpha, r.text)) / max(1, len(r.text)) for r in rollouts]


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return recipe("evolved", str(folder)).replace(eval_tasks=0, evaluation=Evaluation())


def train(trained, folder):
    trainer = create_trainer(trained, folder, NullCallback())
    with trainer.lock:
        return trainer()


def test_the_journal_has_the_parents_that_a_prompt_shows(evolved, tmp_path):
    train(evolved.replace(learning_rate=0.0), tmp_path / "run")
    rollouts = {r["id"]: r for r in read_numbered_rollouts(tmp_path / "run")}
    children = [r for r in rollouts.values() if r["parents"]]
    assert children
    for child in children:
        parents = [rollouts[parent] for parent in child["parents"]]
        rewards = [parent["reward"] for parent in parents]
        assert rewards == sorted(rewards)
        assert all(parent["step"] < child["step"] for parent in parents)
        shown = "".join("!" + (p["text"].strip() or p["text"]) for p in parents) + "?"
        assert child["turns"][0]["observation"].endswith(shown)
        assert {parent["task"] for parent in parents} == {child["task"]}
    metrics = read_metrics(tmp_path / "run")
    assert metrics[-1]["archive/best"] == max(r["reward"] for r in rollouts.values())
    assert 0 < metrics[-1]["archive/coverage"] <= 1


def test_a_run_ends_when_its_executions_are_used(evolved, tmp_path):
    per_step = evolved.prompts_per_step * 4
    limit = EarlyStopping(max_executions=2 * per_step)
    counted = evolved.replace(env=env_with_reward(CountedLetters()), early_stopping=limit)
    summary = train(counted.replace(max_steps=5), tmp_path / "run")
    assert summary["steps"] == 2
    assert summary["ledger"]["usage/executions"] == 2 * per_step
    expected = f"{2 * per_step} programs were executed, early_stopping.max_executions is"
    assert summary["stop_reason"].startswith(expected)
