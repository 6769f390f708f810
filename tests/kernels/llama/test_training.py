"""Runs with the native backend are bit-identical when repeated or resumed."""

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from tests.helpers import training_components, training_recipes
from tests.helpers.llama_backends import count_calls
from tests.helpers.run_outcomes import differences, outcome


class InterruptAfterStep2(NullCallback):
    """Interrupts a run after its second step."""

    def on_step_end(self, step, metrics):
        if step == 2:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grpo", "lora", "turns"])
def test_repeated_and_resumed_runs_are_bit_identical(name, tmp_path: Path, monkeypatch):
    training_components.save_models(tmp_path / "model")
    recipe = training_recipes.recipe(name, str(tmp_path / "model"))
    recipe = recipe.replace(max_steps=3, save_every=1)
    results: list[Tensor | None] = []
    original = NativeLlamaBackend._cached_activation_index

    def recording(*args: Any) -> Tensor | None:
        results.append(original(*args))
        return results[-1]

    monkeypatch.setattr(NativeLlamaBackend, "_cached_activation_index", recording)
    with count_calls() as counts:
        run_training(recipe, tmp_path / "whole")
    assert counts["decode"] > 0
    assert len(results) >= recipe.max_steps
    assert all(index is not None for index in results)
    run_training(recipe, tmp_path / "again")
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe, tmp_path / "cut", InterruptAfterStep2())
    resume_training(tmp_path / "cut")
    for other in ("again", "cut"):
        assert differences(outcome(tmp_path / "whole"), outcome(tmp_path / other)) == []
