"""Fixtures: a real run of a tiny model, hand-written run folders, a browser."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from grupo.core.component import component
from grupo.core.types import RewardResult, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.training.start import run_training
from tests.helpers.small_model import make_small_model


@component
class Digits:
    """The reward is the fraction of digits in the generated text."""

    async def reply(self, task: Task, rollout: Rollout) -> str | None:
        return None if rollout.turns else str(task.prompt)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> list[RewardResult]:
        fractions = [sum(map(str.isdigit, r.text)) / max(1, len(r.text)) for r in rollouts]
        return [RewardResult(fraction, {"digits": fraction}) for fraction in fractions]


@component
class Sums:
    """The prompts "0 + 1 =", "1 + 1 =" and so on."""

    count: int = 12

    def load(self) -> list[Task]:
        return [Task(str(i), f"{i} + 1 =", i + 1) for i in range(self.count)]


def tiny_model(folder: Path) -> str:
    """A character-level model of ASCII."""
    return make_small_model(folder, [*map(chr, range(32, 127)), "\n"])


def recipe_of(model: str, steps: int = 3) -> Recipe:
    """A recipe with a KL to the reference policy, so that every unconditional metric is logged."""
    policy = CausalLM(model, max_new_tokens=8)
    return Recipe(
        policy=policy,
        env=Digits(),
        tasks=Sums(),
        eval_tasks=4,
        method=grpo(kl_coef=0.01),
        max_steps=steps,
        prompts_per_step=4,
        learning_rate=1e-3,
    )


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return recipe_of(tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="session")
def real_run(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run_training(recipe, folder)
    return folder


@pytest.fixture
def write_run(tmp_path: Path):
    """A function that writes a run's folder; `end` is appended to both journals."""

    def write(rollouts: Sequence[dict] = (), metrics: Sequence[dict] = (), end: str = "") -> Path:
        (tmp_path / "recipe.json").write_text("{}")
        for name, lines in (("rollouts", rollouts), ("metrics", metrics)):
            text = "".join(json.dumps(line) + "\n" for line in lines) + end
            (tmp_path / f"{name}.jsonl").write_text(text)
        return tmp_path

    return write


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory):
    from tests.helpers.browser import browsing

    with browsing(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def browser(chromium):
    """A browser with a large screen; fails the test if a page logs an error."""
    chromium.size(1280, 900)
    yield chromium
    assert chromium.errors == []
