"""A comparison on disk, so that its folder says what was compared and how to go on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.compare.budget import KINDS
from grupo.compare.experiment import Comparison
from grupo.compare.update_budget import own
from grupo.core.errors import Refused
from grupo.core.serialization import from_data, to_data
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically

FILE, FORMAT = "comparison.json", 1


def write(comparison: Comparison, out: Path) -> None:
    """Note in `out` what is compared."""
    data = {
        "format": FORMAT,
        "budget": {comparison.budget.unit: comparison.budget.count},
        "seeds": list(comparison.numbers),
        "updates": to_data(comparison.updates, "updates"),
        "baseline": comparison.against,
        "metric": comparison.metric,
        "recipes": _data(comparison.recipes),
        "task_sets": _data(comparison.task_sets),
        "grown": to_data(comparison.grown),
    }
    make_folder(out)
    write_atomically(out / FILE, strict_json.exact_text(data))


def read(out: Path) -> Comparison:
    """What was noted there."""
    path = out / FILE
    if not path.is_file():
        raise Refused(
            f"out: {str(out)!r} holds no comparison. Say what is compared: --method or --recipes."
        )
    try:
        data = strict_json.read_exact(path.read_text())
        if data["format"] != FORMAT:
            raise Refused(f"it has format {data['format']!r}, this version reads {FORMAT}.")
        return _made(data)
    except Refused as error:
        raise Refused(f"out: {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"out: {path} is damaged: {type(error).__name__}: {error}.") from error


def _made(data: Mapping[str, Any]) -> Comparison:
    """A folder that says nothing of updates holds runs of which each kept its own."""
    ((unit, count),) = data["budget"].items()
    return Comparison(
        recipes={name: from_data(recipe) for name, recipe in data["recipes"].items()},
        budget=KINDS[unit](count),
        seeds=tuple(data["seeds"]),
        updates=from_data(data["updates"]) if "updates" in data else own,
        task_sets={name: from_data(one) for name, one in data["task_sets"].items()},
        baseline=data["baseline"],
        metric=data["metric"],
        grown=from_data(data["grown"]),
    )


def _data(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_data(one, name) for name, one in named.items()}
