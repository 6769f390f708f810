"""Weights of models that a recipe reads and does not train: judges, learned rewards, teachers."""

from collections.abc import Iterator
from typing import NamedTuple

from grupo.config.memory_estimate import FLOAT32
from grupo.core.component import walk
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.devices import compute_dtype, resolve_device
from grupo.models.model_size import read_model_size
from grupo.recipe import Recipe
from grupo.rewards import LearnedReward, LocalModel


class FrozenWeights(NamedTuple):
    """A model that is loaded beside the policy.

    Args:
        model: Folder or hub name.
        bytes_per_weight: Bytes of a stored weight, and of the copy that computes where its type
            differs.
    """

    model: str
    bytes_per_weight: int


def frozen_models(recipe: Recipe) -> list[FrozenWeights]:
    """The models of judges, learned rewards and teachers of a recipe, in its order.

    A component that occurs several times has one model. Models behind an address have no weights
    here. Teachers and learned rewards are stored in float32.
    """
    parts = (part for value in (recipe.env, recipe.aux_models) for part in walk(value))
    return [weights for part in dict.fromkeys(_models_in(parts)) for weights in _weights(part)]


def frozen_bytes(recipe: Recipe) -> float:
    """Bytes of the weights of all models beside the policy; reads their config files only.

    Raises:
        ConfigError: There is no such model, or its config file is malformed.
    """
    found = frozen_models(recipe)
    return float(sum(read_model_size(x.model).num_parameters * x.bytes_per_weight for x in found))


Loaded = LocalModel | LearnedReward | CausalLM


def _models_in(parts: Iterator[object]) -> Iterator[Loaded]:
    for part in parts:
        if isinstance(part, LocalModel | LearnedReward):
            yield part
        if isinstance(part, AuxModel) and isinstance(part.model, CausalLM):
            yield part.model


def _weights(part: Loaded) -> Iterator[FrozenWeights]:
    if not isinstance(part.model, str):  # a model in memory
        return
    size = compute_dtype(part.dtype, resolve_device(part.device)).itemsize
    copies = FLOAT32 + size * (size < FLOAT32)
    yield FrozenWeights(part.model, size if isinstance(part, LocalModel) else copies)
