"""`comparison.json`: the definition of a comparison, from which it can be resumed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from grupo.compare.budget import BUDGET_TYPES, Budget
from grupo.compare.controls import Control
from grupo.compare.experiment import METRICS, Comparison, TaskSet, check_baseline
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.toy_models import ToyModelSpec
from grupo.compare.update_budget import (
    ALLOWED,
    FixedUpdates,
    UpdatePlanRule,
    per_method,
    shared,
)
from grupo.core.component import to_code
from grupo.core.field_types import describe_type, matches_type
from grupo.core.serialization import from_data, to_data
from grupo.recipe import Recipe
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import read_limited
from grupo.util.run_files import COMPARISON_FILE

FORMAT_VERSION = 1
TOY_MODELS = "a tuple of toy models, such as ToyModel()"
T = TypeVar("T")


def check_folder(out: Path) -> None:
    """Raise `ConfigError` for a folder with files that belong to no comparison."""
    if not out.is_dir() or (out / COMPARISON_FILE).is_file():
        return
    others = sorted(p.name for p in out.iterdir() if not p.name.startswith(("tmp.", "lock")))
    if others:
        raise ConfigError(
            f"out: {str(out)!r} holds {', '.join(others[:8])}. Allowed: a comparison, or a new"
            " folder. Name another one with --out."
        )


def save_comparison(comparison: Comparison, out: Path) -> None:
    """Write the definition of a comparison into its folder."""
    data = {
        "format": FORMAT_VERSION,
        "budget": {comparison.budget.unit: comparison.budget.count},
        "seeds": list(comparison.seed_values),
        "updates": to_data(comparison.updates, "updates"),
        "baseline": comparison.baseline_name,
        "metric": comparison.metric,
        "recipes": _data_by_name(comparison.recipes),
        "task_sets": _data_by_name(comparison.task_sets),
        "toy_models": to_data(comparison.toy_models),
        "controls": to_data(comparison.controls),
        "design": comparison.design and to_data(comparison.design, "design"),
    }
    make_folder(out)
    write_atomically(out / COMPARISON_FILE, strict_json.to_exact_json(data))


def load_comparison(out: Path) -> Comparison:
    """Read the definition of a comparison from its folder.

    Raises:
        ConfigError: there is none, it has another format, or it is damaged.
    """
    path = out / COMPARISON_FILE
    if not path.is_file():
        raise ConfigError(
            f"out: {str(out)!r} holds no comparison. Define one with --method or --recipes."
        )
    try:
        data = strict_json.from_exact_json(read_limited(path))
        if data["format"] != FORMAT_VERSION:
            raise ConfigError(
                f"it has format {data['format']!r}, this version reads {FORMAT_VERSION}."
            )
        return _comparison_from_data(data)
    except ConfigError as error:
        raise ConfigError(f"out: {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"out: {path} is damaged: {type(error).__name__}: {error}.") from error


def _comparison_from_data(data: Mapping[str, Any]) -> Comparison:
    """Folders without `updates` or `design` are older: own update plans, all seeds tested once."""
    seeds = data["seeds"]
    updates = from_data(data["updates"]) if "updates" in data else per_method
    controls = from_data(data["controls"]) if "controls" in data else ()
    design = data.get("design")
    recipes = _components_by_name("recipes", data["recipes"], Recipe)
    check_baseline(_typed("baseline", data["baseline"], str), recipes)
    return Comparison(
        recipes=recipes,
        budget=_budget(data["budget"]),
        seeds=_typed("seeds", tuple(seeds) if isinstance(seeds, list) else seeds, tuple[int, ...]),
        updates=_rule(updates),
        task_sets=_components_by_name("task_sets", data["task_sets"], TaskSet),
        baseline=data["baseline"],
        metric=_metric(data["metric"]),
        toy_models=_typed(
            "toy_models", from_data(data["toy_models"]), tuple[ToyModelSpec, ...], TOY_MODELS
        ),
        controls=_typed("controls", controls, tuple[Control, ...]),
        design=_typed("design", design and from_data(design), SequentialDesign | None),
    )


def _budget(data: Any) -> Budget:
    units = list(data) if isinstance(data, Mapping) else []
    if len(units) != 1 or units[0] not in BUDGET_TYPES:
        allowed = ", ".join(BUDGET_TYPES)
        raise ConfigError(f"budget: {to_code(data)}. Allowed: a number of one of {allowed}.")
    return BUDGET_TYPES[units[0]](data[units[0]])


def _metric(name: Any) -> str:
    """The name of a metric; a report needs no other check of the comparison."""
    if _typed("metric", name, str) not in METRICS:
        raise ConfigError(f"metric: {name!r}. {suggest(name, METRICS)}")
    return name


def _rule(value: Any) -> UpdatePlanRule:
    """A rule of the command line; another function would be called where a report is made."""
    if value not in (shared, per_method) and not isinstance(value, FixedUpdates):
        raise ConfigError(f"updates: {to_code(value)}. Allowed: {', '.join(ALLOWED)}.")
    return value


def _typed(field: str, value: Any, hint: Any, allowed: str = "") -> Any:
    """The value of a field; raises if it is of another kind than the field's."""
    if not matches_type(value, hint):
        allowed = allowed or describe_type(hint)
        raise ConfigError(f"{field}: {to_code(value)}. Allowed: {allowed}.")
    return value


def _components_by_name(field: str, data: Any, kind: type[T]) -> dict[str, T]:
    if not isinstance(data, Mapping):
        allowed = f"an object that holds a {kind.__name__} for each name"
        raise ConfigError(f"{field}: {to_code(data)}. Allowed: {allowed}.")
    return {
        name: _typed(f"{field}: {name!r}", from_data(component), kind, f"a {kind.__name__}")
        for name, component in data.items()
    }


def _data_by_name(components: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_data(component, name) for name, component in components.items()}
