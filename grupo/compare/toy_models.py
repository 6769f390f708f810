"""Models that are grown on the spot: once, before any cell starts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from grupo.recipe import Recipe
from grupo.training.callbacks import Callback, NullCallback


@runtime_checkable
class ToyModelSpec(Protocol):
    """Whatever knows where its grown model is kept."""

    @property
    def model_dir(self) -> Path: ...


def missing_toy_models(
    toy_models: Iterable[ToyModelSpec], recipes: Iterable[Recipe]
) -> list[ToyModelSpec]:
    """Those whose model some recipe names, and which nobody grew yet."""
    named = {recipe.policy.model for recipe in recipes}
    return [one for one in toy_models if str(one.model_dir) in named and not _exists(one)]


def make_toy_model(toy_model: ToyModelSpec, callback: Callback = NullCallback()) -> None:
    """Grow a model into its home."""
    from grupo.toy import arithmetic_lm, flow_pretrain

    if isinstance(toy_model, flow_pretrain.ToyFlow):
        flow_pretrain.ensure_trained_flow(toy_model, callback)
    elif isinstance(toy_model, arithmetic_lm.ToyModel):
        arithmetic_lm.ensure_trained(toy_model, callback)
    else:
        raise TypeError(f"{toy_model} has a home, and nobody knows how to grow it.")


def _exists(toy_model: ToyModelSpec) -> bool:
    return (toy_model.model_dir / "config.json").is_file()
