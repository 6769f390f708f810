"""`comparison.json`: the definition of a comparison, from which it can be resumed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.compare.budget import BUDGET_TYPES
from grupo.compare.experiment import Comparison
from grupo.compare.update_budget import per_method
from grupo.core.component import to_code
from grupo.core.errors import ConfigError
from grupo.core.field_types import describe_type, matches_type
from grupo.core.json_text import read_limited
from grupo.core.sequential import SequentialDesign
from grupo.core.serialization import from_data, to_data
from grupo.recipe import Recipe
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically

MANIFEST_FILE = "comparison.json"
FORMAT_VERSION = 1


def check_folder(out: Path) -> None:
    """Raise `ConfigError` for a folder with files that belong to no comparison."""
    if not out.is_dir() or (out / MANIFEST_FILE).is_file():
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
    write_atomically(out / MANIFEST_FILE, strict_json.to_exact_json(data))


def load_comparison(out: Path) -> Comparison:
    """Read the definition of a comparison from its folder.

    Raises:
        ConfigError: there is none, it has another format, or it is damaged.
    """
    path = out / MANIFEST_FILE
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
    ((unit, count),) = data["budget"].items()
    return Comparison(
        recipes={name: _recipe(name, recipe) for name, recipe in data["recipes"].items()},
        budget=BUDGET_TYPES[unit](count),
        seeds=_typed(tuple(data["seeds"]), tuple[int, ...]),
        updates=from_data(data["updates"]) if "updates" in data else per_method,
        task_sets={name: from_data(tasks) for name, tasks in data["task_sets"].items()},
        baseline=_typed(data["baseline"], str),
        metric=_typed(data["metric"], str),
        toy_models=from_data(data["toy_models"]),
        controls=from_data(data["controls"]) if "controls" in data else (),
        design=_design(data.get("design")),
    )


def _typed(value: Any, hint: Any) -> Any:
    if not matches_type(value, hint):
        raise TypeError(f"{to_code(value)}. Allowed: {describe_type(hint)}")
    return value


def _design(data: Any) -> SequentialDesign | None:
    design = data and from_data(data)
    return _typed(design, SequentialDesign | None)


def _recipe(name: str, data: Any) -> Recipe:
    recipe = from_data(data)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"recipes: {name!r} is {to_code(recipe)}. Allowed: a Recipe.")
    return recipe


def _data_by_name(components: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_data(component, name) for name, component in components.items()}
