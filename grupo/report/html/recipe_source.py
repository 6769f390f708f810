"""A recipe as a run's folder holds it, read as code; nothing that it names is imported."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.serialization import to_data
from grupo.method import Method

Lines = Sequence[tuple[str, ...]]


def code(data: Any) -> str:
    """What `spelling.to_data` wrote, as the code that makes it.

    >>> code({"piece": "grupo.algo.losses.policy_gradient:Clip", "low": 0.2, "high": 0.28})
    'Clip(low=0.2, high=0.28)'
    """
    if not isinstance(data, Mapping):
        return repr(data)
    if "piece" in data:
        return _piece(data["piece"], {n: x for n, x in data.items() if n != "piece"})
    if "tuple" in data:
        inside = list(map(code, data["tuple"]))
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    if "function" in data:
        module, _, name = str(data["function"]).partition(":")
        return f"{module.rpartition('.')[2]}.{name}"
    return repr(data.get("path", dict(data)))


def fields(recipe: Mapping[str, Any]) -> Lines:
    """Every field of a recipe, and the code that fills it."""
    return [
        (name, code(value)) for name, value in recipe.items() if name not in ("piece", "method")
    ]


def changes(method: Mapping[str, Any]) -> Lines:
    """Of every slot of a method: what GRPO has there, and what this one has."""
    usual = to_data(Method())
    slots = [name for name in {**usual, **method} if name != "piece"]
    return [(name, _said(usual, name), _said(method, name)) for name in slots]


def _said(method: Mapping[str, Any], slot: str) -> str:
    return code(method[slot]) if slot in method else "not known to that version"


def _piece(address: str, inside: Mapping[str, Any]) -> str:
    """A piece; sums, multiples and chains as people write them."""
    match address, inside:
        case "grupo.algo.losses.base:Sum", {"left": left, "right": right}:
            return f"{code(left)} + {code(right)}"
        case "grupo.algo.losses.base:Scaled", {"factor": factor, "loss": loss}:
            inner = f"({code(loss)})" if ":Sum" in str(loss.get("piece")) else code(loss)
            return f"{code(factor)} * {inner}"
        case "grupo.algo.advantages.combinators:Chain", {"steps": {"tuple": steps}}:
            return f"chain({', '.join(map(code, steps))})"
    given = ", ".join(f"{name}={code(value)}" for name, value in inside.items())
    return f"{address.rpartition(':')[2]}({given})"
