"""A real run of a tiny model, made once."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from grupo.core.component import component
from grupo.core.types import RewardResult, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.training.trainer import train
from tests.helpers.small_model import plant


@component
class Digits:
    """Pays for the share of digits in an answer."""

    async def reply(self, task: Task, rollout: Rollout) -> str | None:
        return None if rollout.turns else str(task.prompt)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> list[RewardResult]:
        shares = [sum(map(str.isdigit, r.text)) / max(1, len(r.text)) for r in rollouts]
        return [RewardResult(share, {"digits": share}) for share in shares]


@component
class Sums:
    """A few sums."""

    count: int = 12

    def load(self) -> list[Task]:
        return [Task(str(i), f"{i} + 1 =", i + 1) for i in range(self.count)]


def tiny_model(folder: Path) -> str:
    """A model of the characters of ASCII."""
    return plant(folder, [*map(chr, range(32, 127)), "\n"])


def recipe_of(model: str, steps: int = 3) -> Recipe:
    """A recipe whose method has a reference, so that every metric is there."""
    policy = CausalLM(model, max_new_tokens=8)
    small = Recipe(
        policy=policy, env=Digits(), tasks=Sums(), eval_tasks=4, method=grpo(kl_coef=0.01)
    )
    return small.replace(max_steps=steps, prompts_per_step=4, learning_rate=1e-3)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return recipe_of(tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="session")
def real_run(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(recipe, folder)
    return folder


@pytest.fixture
def written(tmp_path: Path):
    """Writes a run's folder by hand."""

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
    """A browser on a large screen, on whose pages nothing goes wrong."""
    chromium.size(1280, 900)
    yield chromium
    assert chromium.errors == []
