"""A recipe as a run's folder holds it, read as code; nothing that it names is imported."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.serialization import to_data
from grupo.method import Method

FieldLines = Sequence[tuple[str, ...]]


def as_code(data: Any) -> str:
    """What `spelling.to_data` wrote, as the code that makes it.

    >>> as_code({"piece": "grupo.algo.losses.policy_gradient:Clip", "low": 0.2, "high": 0.28})
    'Clip(clip_low=0.2, clip_high=0.28)'
    """
    if not isinstance(data, Mapping):
        return repr(data)
    if "piece" in data:
        return _component_code(data["piece"], {n: x for n, x in data.items() if n != "piece"})
    if "tuple" in data:
        inside = list(map(as_code, data["tuple"]))
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    if "function" in data:
        module, _, name = str(data["function"]).partition(":")
        return f"{module.rpartition('.')[2]}.{name}"
    return repr(data.get("path", dict(data)))


def recipe_fields(recipe: Mapping[str, Any]) -> FieldLines:
    """Every field of a recipe, and the code that fills it."""
    return [
        (name, as_code(value)) for name, value in recipe.items() if name not in ("piece", "method")
    ]


def method_changes(method: Mapping[str, Any]) -> FieldLines:
    """Of every slot of a method: what GRPO has there, and what this one has."""
    usual = to_data(Method())
    slots = [name for name in {**usual, **method} if name != "piece"]
    return [(name, _slot_code(usual, name), _slot_code(method, name)) for name in slots]


def _slot_code(method: Mapping[str, Any], slot: str) -> str:
    return as_code(method[slot]) if slot in method else "not known to that version"


def _component_code(address: str, inside: Mapping[str, Any]) -> str:
    """A piece; sums, multiples and chains as people write them."""
    match address, inside:
        case "grupo.algo.losses.base:SumLoss", {"left": left, "right": right}:
            return f"{as_code(left)} + {as_code(right)}"
        case "grupo.algo.losses.base:ScaledLoss", {"factor": factor, "loss": loss}:
            inner = f"({as_code(loss)})" if ":Sum" in str(loss.get("piece")) else as_code(loss)
            return f"{as_code(factor)} * {inner}"
        case "grupo.algo.advantages.combinators:Chain", {"steps": {"tuple": steps}}:
            return f"chain({', '.join(map(as_code, steps))})"
    given = ", ".join(f"{name}={as_code(value)}" for name, value in inside.items())
    return f"{address.rpartition(':')[2]}({given})"
