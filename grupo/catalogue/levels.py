"""How far the evidence about a paper goes: the level of the places that show its claim."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from grupo.core.paper import FORMULA_ONLY, LEVELS
from grupo.util.json_text import parse_json

FILE = "levels.json"


def level_of(places: Iterable[str]) -> str:
    """The furthest level of some places, "formula only" without any.

    Args:
        places: Places of `Paper.shown`.

    >>> level_of(["docs/claims.md#keys"]), level_of([])
    ('small environment', 'formula only')
    """
    known = place_levels()
    reached = {known.get(place, FORMULA_ONLY) for place in places}
    return next((level for level in LEVELS if level in reached), FORMULA_ONLY)


@cache
def place_levels() -> Mapping[str, str]:
    """The level of each place that a record names, which `python -m tools.levels` derives."""
    text = (files("grupo.catalogue") / FILE).read_text(encoding="utf-8")
    return parse_json(text)
