"""`recipe.json` rendered as Python code, without importing what it names."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.serialization import to_data
from grupo.method import Method

FieldLines = Sequence[tuple[str, ...]]


def as_code(data: Any) -> str:
    """The output of `serialization.to_data` as the code that builds it.

    >>> address = "grupo.algo.losses.policy_gradient:Clip"
    >>> as_code({"component": address, "clip_low": 0.2, "clip_high": 0.28})
    'Clip(clip_low=0.2, clip_high=0.28)'
    """
    if not isinstance(data, Mapping):
        return repr(data)
    if "component" in data:
        fields = {name: value for name, value in data.items() if name != "component"}
        return _component_code(data["component"], fields)
    if "tuple" in data:
        items = list(map(as_code, data["tuple"]))
        return f"({', '.join(items)}{',' * (len(items) == 1)})"
    if "function" in data:
        module, _, name = str(data["function"]).partition(":")
        return f"{module.rpartition('.')[2]}.{name}"
    if "in_memory" in data:
        return f"<{data['in_memory']}>"
    return repr(data.get("path", dict(data)))


def recipe_fields(recipe: Mapping[str, Any]) -> FieldLines:
    """Every field of a recipe as code, except the method."""
    shown = (name for name in recipe if name not in ("component", "method"))
    return [(name, as_code(recipe[name])) for name in shown]


def method_changes(method: Mapping[str, Any]) -> FieldLines:
    """For every slot of a method: its name, GRPO's component, and the method's component."""
    grpo = to_data(Method())
    slots = [name for name in {**grpo, **method} if name != "component"]
    return [(name, _slot_code(grpo, name), _slot_code(method, name)) for name in slots]


def _slot_code(method: Mapping[str, Any], slot: str) -> str:
    return as_code(method[slot]) if slot in method else "absent in that version"


def _component_code(address: str, fields: Mapping[str, Any]) -> str:
    """A component as code; sums, multiples and chains as operators and `chain`."""
    match address, fields:
        case "grupo.algo.losses.base:SumLoss", {"left": left, "right": right}:
            return f"{as_code(left)} + {as_code(right)}"
        case "grupo.algo.losses.base:ScaledLoss", {"factor": factor, "loss": loss}:
            inner = (
                f"({as_code(loss)})" if ":SumLoss" in str(loss.get("component")) else as_code(loss)
            )
            return f"{as_code(factor)} * {inner}"
        case "grupo.algo.advantages.combinators:Chain", {"estimators": {"tuple": estimators}}:
            return f"chain({', '.join(map(as_code, estimators))})"
    arguments = ", ".join(f"{name}={as_code(value)}" for name, value in fields.items())
    return f"{address.rpartition(':')[2]}({arguments})"
