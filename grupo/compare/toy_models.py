"""Toy models that a comparison trains before its runs, if they are missing."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from grupo.recipe import Recipe
from grupo.training.callbacks import Callback, NullCallback


@runtime_checkable
class ToyModelSpec(Protocol):
    """A specification of a toy model, with the folder of the trained model."""

    @property
    def model_dir(self) -> Path: ...


def missing_toy_models(
    toy_models: Iterable[ToyModelSpec], recipes: Iterable[Recipe]
) -> list[ToyModelSpec]:
    """The toy models that a recipe uses and that have not been trained."""
    used = {recipe.policy.model for recipe in recipes}
    return [spec for spec in toy_models if str(spec.model_dir) in used and not _exists(spec)]


def make_toy_model(toy_model: ToyModelSpec, callback: Callback = NullCallback()) -> None:
    """Train a toy model into its folder.

    Args:
        toy_model: the specification.
        callback: is notified of the training.

    Raises:
        TypeError: there is no training procedure for this specification.
    """
    from grupo.toy import arithmetic_lm, flow_pretrain

    if isinstance(toy_model, flow_pretrain.ToyFlow):
        flow_pretrain.ensure_trained_flow(toy_model, callback)
    elif isinstance(toy_model, arithmetic_lm.ToyModel):
        arithmetic_lm.ensure_trained(toy_model, callback)
    else:
        raise TypeError(f"{toy_model} is not a toy model that grupo can train.")


def _exists(toy_model: ToyModelSpec) -> bool:
    return (toy_model.model_dir / "config.json").is_file()
