"""Models that are grown on the spot: once, before any cell starts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from grupo.recipe import Recipe
from grupo.training.callbacks import Silent, Watcher


@runtime_checkable
class Home(Protocol):
    """Whatever knows where its grown model is kept."""

    @property
    def home(self) -> Path: ...


def wanted(grown: Iterable[Home], recipes: Iterable[Recipe]) -> list[Home]:
    """Those whose model some recipe names, and which nobody grew yet."""
    named = {recipe.policy.model for recipe in recipes}
    return [one for one in grown if str(one.home) in named and not _there(one)]


def grow(one: Home, watcher: Watcher = Silent()) -> None:
    """Grow a model into its home."""
    from grupo.toy import arithmetic_lm, flow_pretrain

    if isinstance(one, flow_pretrain.Taught):
        flow_pretrain.ensure(one, watcher)
    elif isinstance(one, arithmetic_lm.Grown):
        arithmetic_lm.ensure(one, watcher)
    else:
        raise TypeError(f"{one} has a home, and nobody knows how to grow it.")


def _there(one: Home) -> bool:
    return (one.home / "config.json").is_file()
