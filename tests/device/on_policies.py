"""Two steps of each kind of recipe on a simulated CUDA device, with checkpoints and evaluations."""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grupo.training.start import run_training
from tests.helpers import training_recipes
from tests.helpers.fast_cases import fast_cases
from tests.helpers.training_components import save_models


def on_cuda(spec: Any) -> Any:
    """The specification of a policy, and of those within it, on CUDA."""
    if isinstance(spec, tuple):
        return tuple(map(on_cuda, spec))
    if not is_dataclass(spec):
        return spec
    changes = {field.name: on_cuda(getattr(spec, field.name)) for field in fields(spec)}
    return replace(spec, **changes | ({"device": "cuda"} if "device" in changes else {}))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return folder


FAST = ("async", "lora")


@pytest.mark.parametrize(
    "name",
    fast_cases(FAST, training_recipes.CHANGES),
)
def test_a_recipe_trains_on_cuda(name: str, models: Path, tmp_path: Path):
    recipe = training_recipes.recipe(name, str(models))
    recipe = recipe.replace(policy=on_cuda(recipe.policy), max_steps=2, save_every=1)
    run_training(recipe, tmp_path / "run")
