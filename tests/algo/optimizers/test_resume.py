"""A run with each optimizer, evaluated in between, ends with the same bits if it is interrupted."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grupo.algo.optimizers import SGD, Adafactor, Adam8bit, Muon, ScheduleFreeAdam
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.storage import checkpoint
from grupo.training.callbacks import NullCallback
from grupo.training.learner import Learner
from grupo.training.resume.load_run import load_policy
from grupo.training.start import resume_training, run_training
from tests.helpers import training_components
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.training_recipes import base

OPTIMIZERS = (
    SGD(momentum=0.9),
    Adafactor(weight_decay=0.1),
    Muon(),
    ScheduleFreeAdam(weight_decay=0.1),
    Adam8bit(),
)


class InterruptedRun(Exception):
    """The run ends here."""


class Interrupt(NullCallback):
    """Interrupts a run after a step.

    Args:
        step: The step.
    """

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, step: int, metrics) -> None:
        if step == self.step:
            raise InterruptedRun


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models")
    training_components.save_models(folder)
    return str(folder)


def recipe_with(optimizer, model: str) -> Recipe:
    """A recipe of a small model; with Adam8bit, one with matrices of more than 4,096 numbers."""
    folder = f"{model}/{training_components.WIDE}" if isinstance(optimizer, Adam8bit) else model
    policy = CausalLM(folder, max_new_tokens=6, device="cpu")
    return base(model).replace(policy=policy, optimizer=optimizer)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", fast_cases(1, OPTIMIZERS), ids=repr)
def test_interrupted_run_ends_as_the_uninterrupted_one(model, tmp_path, optimizer):
    recipe = recipe_with(optimizer, model)
    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    run_training(recipe, whole)
    with pytest.raises(InterruptedRun):
        run_training(recipe, interrupted, Interrupt(step=2))  # the newest checkpoint has two steps
    resume_training(interrupted)
    assert differences(outcome(whole), outcome(interrupted)) == []


def test_checkpoints_and_evaluations_have_the_averaged_weights(model, tmp_path):
    recipe = recipe_with(ScheduleFreeAdam(), model).replace(max_steps=2)
    run = tmp_path / "run"
    run_training(recipe, run)
    saved = checkpoint.load_newest(run / "checkpoints").tensors
    policy, _ = load_policy(run)
    for number, (name, weights) in enumerate(policy.weights().items()):
        assert torch.equal(weights, saved["weights"][name])
        assert not torch.equal(weights, saved["optimizer"][f"weights.{number}"])
    # an evaluation of the loaded policy is that of the end of the run
    learner = Learner(recipe)
    learner.policy.load(saved["weights"])
    learner.evaluate("again")
    summary_scores = checkpoint.load_newest(run / "checkpoints").data["eval_scores"]
    assert learner.state.eval_scores["again"] == summary_scores["after"]


@pytest.mark.slow
def test_evaluating_changes_no_bit_of_the_training(model, tmp_path):
    recipe = recipe_with(ScheduleFreeAdam(), model)
    often, never = Path(tmp_path / "often"), Path(tmp_path / "never")
    run_training(recipe, often)
    run_training(recipe.replace(evaluation=replace(recipe.evaluation, every=0)), never)
    first, second = outcome(often), outcome(never)
    assert first["weights"] == second["weights"]
    assert first["rollouts"] == second["rollouts"]
