"""Runs that end with a budget."""

from dataclasses import replace

import pytest

from grupo.compare import Seconds, Steps, Tokens, Usage, parse_budget
from grupo.compare.budget import used_fraction
from grupo.core.errors import ConfigError
from grupo.core.schedules import Linear
from grupo.recipe import EarlyStopping
from grupo.report.read_run import read_metrics
from grupo.training.trainer import resume, train


def test_what_is_held_equal_is_read():
    assert [parse_budget(text) for text in ("steps=5", "tokens=1_000", "seconds=2.5")] == [
        Steps(5),
        Tokens(1000),
        Seconds(2.5),
    ]


@pytest.mark.parametrize("text", ["5", "token=5", "steps", "steps=5.5", "tokens=many", "steps=-1"])
def test_another_budget_is_refused(text):
    with pytest.raises(ConfigError, match="budget: "):
        parse_budget(text)


def test_a_share_is_of_what_is_held_equal():
    spent = Usage(3, 50.0, 1.0)
    assert [used_fraction(b, spent) for b in (Steps(4), Tokens(200), Seconds(0.5))] == [
        0.75,
        0.25,
        1.0,
    ]


def test_progress_is_of_whatever_ends_the_run_first(recipe):
    ten = recipe.replace(max_steps=10)
    assert ten.progress(3, 10**9, 10**9) == 0.35
    some = ten.replace(early_stopping=EarlyStopping(max_tokens=200, max_seconds=10.0))
    assert some.progress(3, 100, 1.0) == 0.5  # of the tokens
    assert some.progress(3, 20, 9.0) == 0.9  # of the seconds
    assert some.progress(3, 20, 1.0) == 0.35  # of the steps


@pytest.fixture
def by_tokens(recipe):
    """A run that ends after so many tokens, its learning rate falling to 0 until then."""
    return Tokens(60).limit_recipe(recipe).replace(learning_rate=Linear(1e-2, 0.0))


def test_a_run_ends_with_the_step_that_reaches_its_tokens(by_tokens, tmp_path):
    summary = train(by_tokens, tmp_path / "run")
    sampled = [step["tokens/generated"] for step in read_metrics(tmp_path / "run")]
    assert sum(sampled) == summary["tokens"] >= 60 > sum(sampled[:-1])
    assert list(summary["held_out"]) == ["before", "after"]


def test_schedules_follow_the_tokens(by_tokens, tmp_path):
    train(by_tokens, tmp_path / "run")
    steps, before = read_metrics(tmp_path / "run"), 0.0
    for number, step in enumerate(steps):
        progress = max(before / 60, (number + 0.5) / by_tokens.steps)
        assert step["lr"] == pytest.approx(1e-2 * (1 - progress))
        before += step["tokens/generated"]


def test_a_run_by_tokens_that_was_cut_off_ends_with_the_same_bits(by_tokens, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(by_tokens, whole)

    class Enough(Exception):
        """Raised after the first step."""

    class Cutting:
        def __getattr__(self, name):
            return self.stop if name == "stepped" else lambda *_: None

        def stop(self, *_):
            raise Enough

    with pytest.raises(Enough):
        train(by_tokens, cut, Cutting())
    resume(cut)
    assert (whole / "rollouts.jsonl").read_bytes() == (cut / "rollouts.jsonl").read_bytes()


def test_a_run_ends_with_the_step_that_is_over_its_seconds(recipe, tmp_path):
    summary = train(Seconds(0.001).limit_recipe(recipe), tmp_path / "run")
    assert summary["steps"] == 1


@pytest.mark.parametrize(("name", "value"), [("tokens", -1), ("seconds", -0.5)])
def test_a_budget_below_nothing_is_refused(recipe, name, value, tmp_path):
    less = recipe.replace(early_stopping=replace(recipe.until, **{name: value}))
    with pytest.raises(ConfigError, match=f"until.{name}: {value}. Allowed: 0 or more"):
        train(less, tmp_path / "run")
    assert not (tmp_path / "run").exists()
