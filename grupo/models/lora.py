"""Low-rank adapters: their settings in a recipe, and a model with them."""

import re
import warnings
from collections.abc import Iterable

from torch import nn
from transformers import PreTrainedModel

from grupo.core.component import component
from grupo.core.ranges import FinitePositive, PositiveInt
from grupo.models.loading import first_line
from grupo.util.errors import ConfigError, suggest
from grupo.util.linear_patterns import LinearPattern

ALL_LINEAR = "all-linear"
NO_MODULE = "(?!)"  # a pattern without a match


@component
class Lora:
    """Low-rank adapters. Hu et al., 2021, arXiv:2106.09685.

    Args:
        rank: rank of the adapter matrices.
        alpha: scale of an adapter's output, which is multiplied by alpha / rank.
        targets: names of the linear layers with adapters, or "all-linear"; another text is a
            regular expression of RE2 for the whole names of modules.
    """

    rank: PositiveInt = 16
    alpha: FinitePositive = 32.0
    targets: str | tuple[str, ...] = ALL_LINEAR


def add_adapters(model: PreTrainedModel, lora: Lora) -> nn.Module:
    """The model with trainable adapters; its own weights are frozen."""
    from peft import LoraConfig, get_peft_model

    _check_targets(model, lora)
    names = [name for name, _ in model.named_modules()]
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyrefly: ignore[bad-argument-type]  # a float is allowed
        target_modules=target_modules(names, lora.targets),
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # peft warns of cases that it handles
            return get_peft_model(model, config)
    except ValueError as error:
        modules = model.named_modules()
        layers = {n.rpartition(".")[2] for n, x in modules if isinstance(x, nn.Linear)}
        allowed = ", ".join((ALL_LINEAR, *sorted(layers)))
        raise ConfigError(
            f"targets: {lora.targets!r}. {first_line(error)} Allowed: {allowed}."
        ) from error


def target_modules(names: Iterable[str], targets: str | tuple[str, ...]) -> str | list[str]:
    """The layers with adapters as peft takes them; peft's own patterns may search without end.

    Args:
        names: Names of all modules of the model.
        targets: Those of `Lora`.

    >>> target_modules(("query", "key", "value"), "query|v.*")
    'query|value'
    """
    if targets == ALL_LINEAR or not isinstance(targets, str):
        return targets if isinstance(targets, str) else list(targets)
    pattern = LinearPattern(targets, "targets")
    return "|".join(re.escape(name) for name in names if pattern.is_whole(name)) or NO_MODULE


def _check_targets(model: nn.Module, lora: Lora) -> None:
    """Raise `ConfigError` for a target that no layer has: peft ignores it if others match."""
    modules = dict(model.named_modules())
    linear = {n.rpartition(".")[2] for n, x in modules.items() if isinstance(x, nn.Linear)}
    for target in () if isinstance(lora.targets, str) else lora.targets:
        if not any(f".{name}".endswith(f".{target}") for name in modules):
            raise ConfigError(
                f"targets: no layer of the model is named {target!r}."
                f" {suggest(target, (ALL_LINEAR, *linear))}"
            )
