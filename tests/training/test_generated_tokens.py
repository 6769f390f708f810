"""The token counts of a run are those of its engine: discarded, evaluated, ahead and resumed."""

from pathlib import Path

import pytest

from grupo.compare import Tokens
from grupo.methods.grpo import grpo
from grupo.recipe import EarlyStopping, Evaluation, Recipe
from grupo.report.read_run import read_metrics
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative
from grupo.testing.smoke.echo_env import MAX_NEW_TOKENS
from grupo.testing.smoke.run import echo_recipe
from grupo.training.callbacks import NullCallback
from grupo.training.start import create_trainer, reopen_trainer
from tests.helpers.drawing_engine import DrawingEngine
from tests.helpers.fast_cases import fast_cases

GROUP_SIZE, PROMPTS = 4, 2
STEP = PROMPTS * GROUP_SIZE * MAX_NEW_TOKENS  # tokens of a step without resampling
TRIES = 4


@pytest.fixture(scope="module")
def plain() -> Recipe:
    """GRPO without held-out tasks; the engine draws letters, so every digit's reward is 0."""
    method = grpo(group_size=GROUP_SIZE, kl_coef=0.0)
    recipe = echo_recipe(method).replace(prompts_per_step=PROMPTS, max_steps=3, save_every=1)
    return recipe.replace(method=recipe.method.replace(sampler=GroupSampler(GROUP_SIZE)))


@pytest.fixture(scope="module")
def resampling(plain: Recipe) -> Recipe:
    """Discards three of four groups."""
    sampler = ResampleUntilInformative(GroupSampler(GROUP_SIZE), TRIES)
    return plain.replace(method=plain.method.replace(sampler=sampler))


def train(recipe: Recipe, run: Path) -> tuple[dict, int]:
    """The summary of a run, and the number of tokens that its engine has drawn."""
    trainer = create_trainer(recipe, run)
    engine = DrawingEngine(trainer.policy)
    with trainer.lock:
        return trainer(), engine.num_drawn


def column(run: Path, name: str) -> list[float]:
    return [step[name] for step in read_metrics(run)]


@pytest.mark.slow
def test_a_resampling_method_gets_no_more_tokens_than_plain_sampling(plain, resampling, tmp_path):
    budget = Tokens(2 * TRIES * STEP)
    plain_run, drawn = train(budget.limit_recipe(plain), tmp_path / "plain")
    resampling_run, drawn_resampling = train(budget.limit_recipe(resampling), tmp_path / "again")
    assert (plain_run["steps"], resampling_run["steps"]) == (2 * TRIES, 2)
    assert drawn_resampling <= drawn == plain_run["tokens"] == budget.count


@pytest.mark.slow
def test_a_step_counts_discarded_groups_as_generated_and_not_as_returned(resampling, tmp_path):
    summary, drawn = train(resampling, tmp_path / "run")
    assert column(tmp_path / "run", "tokens/generated") == [TRIES * STEP] * 3
    assert column(tmp_path / "run", "tokens/returned") == [STEP] * 3
    assert column(tmp_path / "run", "tokens/unused") == [TRIES * STEP] * 3  # no gradient
    assert summary["tokens"] == summary["ledger"]["tokens/generated"] == drawn


@pytest.mark.slow
def test_tokens_of_evaluations_are_counted_apart(plain, tmp_path):
    recipe = plain.replace(eval_tasks=3, evaluation=Evaluation(attempts=2, every=2))
    summary, drawn = train(recipe, tmp_path / "run")
    evaluations = {"before", "step 2", "after"}
    assert set(summary["held_out"]) == evaluations
    evaluated = len(evaluations) * 3 * (1 + 2) * MAX_NEW_TOKENS
    assert summary["ledger"]["tokens/evaluation"] == evaluated
    assert summary["tokens"] == 3 * STEP == drawn - evaluated


@pytest.mark.parametrize("max_tokens", [0, STEP])
def test_tokens_of_steps_generated_ahead_are_counted(plain, tmp_path, max_tokens):
    stopping = EarlyStopping(max_tokens=max_tokens)
    recipe = plain.replace(max_staleness=2, early_stopping=stopping, max_steps=5)
    summary, drawn = train(recipe, tmp_path / "run")
    trained_steps, ahead = (1, 2) if max_tokens else (5, 0)
    assert column(tmp_path / "run", "tokens/generated") == [STEP] * trained_steps
    assert summary["ledger"].get("tokens/generated_ahead", 0) == ahead * STEP
    assert summary["tokens"] == drawn == (trained_steps + ahead) * STEP


class Interrupt(Exception):
    """Raised after a step."""


class InterruptingCallback(NullCallback):
    """Raises in the second step, before its checkpoint."""

    def on_step_end(self, step, metrics):
        if step == 2:
            raise Interrupt


@pytest.mark.slow
@pytest.mark.parametrize("max_staleness", fast_cases(1, [0, 2]))
def test_a_resumed_run_counts_what_an_uninterrupted_one_counts(resampling, tmp_path, max_staleness):
    recipe = resampling.replace(max_staleness=max_staleness, eval_tasks=3)
    summary, _ = train(recipe, tmp_path / "uninterrupted")
    trainer = create_trainer(recipe, tmp_path / "interrupted", InterruptingCallback())
    DrawingEngine(trainer.policy)
    with pytest.raises(Interrupt), trainer.lock:
        trainer()
    resumed = reopen_trainer(tmp_path / "interrupted")
    DrawingEngine(resumed.policy)
    with resumed.lock:
        resumed.restore()
        again = resumed()
    tokens = {name: x for name, x in summary["ledger"].items() if name.startswith("tokens/")}
    assert {name: again["ledger"][name] for name in tokens} == tokens
    assert (again["tokens"], tokens["tokens/generated"]) == (summary["tokens"], 3 * TRIES * STEP)
