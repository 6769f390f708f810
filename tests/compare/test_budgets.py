"""Budgets: parsing, early stopping, schedules."""

from dataclasses import replace

import pytest

from grupo.algo.minibatches import Updates
from grupo.compare import (
    Comparison,
    OptimizerUpdates,
    Seconds,
    Steps,
    Tokens,
    Usage,
    parse_budget,
)
from grupo.compare.budget import used_fraction
from grupo.compare.validate import validate_comparison
from grupo.core.schedules import Linear
from grupo.recipe import EarlyStopping
from grupo.report.read_run import read_metrics
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError


def test_budgets_are_parsed():
    assert [parse_budget(text) for text in ("steps=5", "tokens=1_000", "seconds=2.5")] == [
        Steps(5),
        Tokens(1000),
        Seconds(2.5),
    ]


@pytest.mark.parametrize("text", ["5", "token=5", "steps", "steps=5.5", "tokens=many", "steps=-1"])
def test_invalid_budgets_are_rejected(text):
    with pytest.raises(ConfigError, match="budget: "):
        parse_budget(text)


def test_used_fraction_is_in_the_unit_of_the_budget():
    usage = Usage(3, 50.0, 1.0)
    assert [used_fraction(b, usage) for b in (Steps(4), Tokens(200), Seconds(0.5))] == [
        0.75,
        0.25,
        1.0,
    ]


@pytest.mark.slow
def test_progress_follows_the_limit_that_ends_the_run_first(recipe):
    ten = recipe.replace(max_steps=10)
    assert ten.progress(3, 10**9, 10**9) == 0.35
    limited = ten.replace(early_stopping=EarlyStopping(max_tokens=200, max_seconds=10.0))
    assert limited.progress(3, 100, 1.0) == 0.5  # of the tokens
    assert limited.progress(3, 20, 9.0) == 0.9  # of the seconds
    assert limited.progress(3, 20, 1.0) == 0.35  # of the steps


@pytest.fixture
def by_tokens(recipe):
    """A recipe with a token budget and a learning rate that falls to 0."""
    return Tokens(60).limit_recipe(recipe).replace(learning_rate=Linear(1e-2, 0.0))


def test_run_ends_after_the_step_that_reaches_its_tokens(by_tokens, tmp_path):
    summary = run_training(by_tokens, tmp_path / "run")
    generated = [step["tokens/generated"] for step in read_metrics(tmp_path / "run")]
    assert sum(generated) == summary["tokens"] >= 60 > sum(generated[:-1])
    assert list(summary["held_out"]) == ["before", "after"]


def test_schedules_follow_the_tokens(by_tokens, tmp_path):
    run_training(by_tokens, tmp_path / "run")
    steps, before = read_metrics(tmp_path / "run"), 0.0
    for number, step in enumerate(steps):
        progress = max(before / 60, (number + 0.5) / by_tokens.max_steps)
        assert step["lr"] == pytest.approx(1e-2 * (1 - progress))
        before += step["tokens/generated"]


@pytest.mark.slow
def test_interrupted_run_with_a_token_budget_ends_bit_identically(by_tokens, tmp_path):
    uninterrupted, interrupted = tmp_path / "uninterrupted", tmp_path / "interrupted"
    run_training(by_tokens, uninterrupted)

    class Interrupt(Exception):
        """Raised after the first step."""

    class InterruptingCallback(NullCallback):
        def on_step_end(self, step, metrics):
            raise Interrupt

    with pytest.raises(Interrupt):
        run_training(by_tokens, interrupted, InterruptingCallback())
    resume_training(interrupted)
    journals = [(run / "rollouts.jsonl").read_bytes() for run in (uninterrupted, interrupted)]
    assert journals[0] == journals[1]


def test_run_ends_after_the_step_that_exceeds_its_seconds(recipe, tmp_path):
    summary = run_training(Seconds(0.001).limit_recipe(recipe), tmp_path / "run")
    assert summary["steps"] == 1


@pytest.mark.parametrize(("name", "value"), [("max_tokens", -1), ("max_seconds", -0.5)])
def test_negative_budgets_are_rejected(recipe, name, value):
    with pytest.raises(
        ConfigError, match=f"EarlyStopping.{name}: {value}. Allowed: 0 (or more|to)"
    ):
        replace(recipe.early_stopping, **{name: value})


@pytest.fixture
def two_updates(recipe):
    """The recipe with two updates per step."""
    return recipe.replace(method=recipe.method.replace(updates=Updates(minibatches=2)))


def test_an_equal_number_of_updates_is_a_number_of_steps(two_updates):
    assert parse_budget("updates=6") == OptimizerUpdates(6)
    assert two_updates.updates_per_step == 2
    assert OptimizerUpdates(6).limit_recipe(two_updates).max_steps == 3
    assert used_fraction(OptimizerUpdates(8), Usage(updates=2)) == 0.25


@pytest.mark.parametrize("count", [1, 5])
def test_a_budget_of_updates_that_ends_within_a_step_is_rejected(two_updates, count):
    message = f"budget: updates={count} ends within a step. Allowed: multiples of 2, the updates"
    with pytest.raises(ConfigError, match=message):
        OptimizerUpdates(count).limit_recipe(two_updates)


def test_a_budget_of_tokens_that_ends_before_the_first_update_is_rejected(recipe):
    message = r"budget: tokens=15 ends before the first update\. Allowed: 16 or more, one token"
    with pytest.raises(ConfigError, match=message):
        validate_comparison(Comparison({"grpo": recipe}, Tokens(15)))
    validate_comparison(Comparison({"grpo": recipe}, Tokens(16)))  # 2 prompts x 8 rollouts
