"""Runs whose bodies are lean are the same to the last bit, repeated or gone on with."""

from pathlib import Path

import pytest

from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.training.callbacks import NullCallback
from grupo.training.trainer import resume, train
from tests.helpers import training_components, training_recipes
from tests.helpers.llama_backends import worked
from tests.helpers.run_outcomes import differing, outcome


class Stopping(NullCallback):
    """Somebody who stops a run after its second step."""

    def on_step_end(self, step, metrics):
        if step == 1:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["grpo", "turns"])
def test_a_run_repeated_or_gone_on_with_has_the_same_bits(name, tmp_path: Path, monkeypatch):
    training_components.plant(tmp_path / "model")
    recipe, found = (
        training_recipes.recipe(name, str(tmp_path / "model")).replace(max_steps=3, save_every=1),
        [],
    )
    look = NativeLlamaBackend._cached_activation_index
    monkeypatch.setattr(
        NativeLlamaBackend, "_found", lambda *told: found.append(look(*told)) or found[-1]
    )
    with worked() as counts:
        train(recipe, tmp_path / "whole")
    assert counts["decode"] > 0
    assert len(found) >= recipe.max_steps
    assert all(at is not None for at in found)
    train(recipe, tmp_path / "again")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "cut", Stopping())
    resume(tmp_path / "cut")
    for other in ("again", "cut"):
        assert differing(outcome(tmp_path / "whole"), outcome(tmp_path / other)) == []
