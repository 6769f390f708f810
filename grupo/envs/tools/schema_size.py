"""The work that a JSON Schema makes, with its references followed, before a validator is built.

A schema of thirty definitions, each of which refers twice to the next, has 2^30 parts: a validator
of it fills the memory. One that applies itself twice to each member of an object takes 2^d steps
for an object of depth d. `unevaluatedProperties` evaluates the parts below it again, and each of
these that has the keyword, too, does the same: forty within one another take 3^40 steps. Parts that
are nested thousands of levels deep by references overflow the stack of the validator, which ends
the process.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MAX_PARTS = 10_000  # of a schema with its references followed; published tools have below 1,000
MAX_NESTING = 200  # levels of its parts, with its references followed
MAX_STEPS = 100_000  # of a schema that refers to itself, for one object
MAX_LEVELS = 100  # of an object, as in `grupo.util.limits.JSON_DEPTH`
MAX_FRAMES = 1_000  # levels of parts times levels of an object; 9,000 overflow a stack of 8 MiB
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
EVALUATIONS = 3  # of the parts below such a keyword, at most
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
NAMED = ("properties", "patternProperties", "dependentSchemas")  # objects of schemas by name
UNUSED = ("$defs", "definitions", "const", "enum", "default", "examples")  # no part by themselves


class SchemaTooLarge(ValueError):
    """A schema has too many parts, or parts that are nested too deep."""


class _Walk:
    """A walk through all parts of a schema.

    Args:
        schema: The whole schema.
    """

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.anchors = {f"#{name}": part for name, part in _anchors(schema)}
        self.parts = 0
        self.recursions = 0
        self.levels = 0

    def visit(self, part: Any, open_parts: tuple[int, ...], level: int = 1, times: int = 1) -> None:
        """Count a part and those below it.

        Args:
            part: A schema.
            open_parts: The identities of the targets of references around it.
            level: Number of parts around it, and itself.
            times: How often a validator evaluates it.
        """
        self.parts += times
        self.levels = max(self.levels, level)
        if self.parts > MAX_PARTS:
            raise SchemaTooLarge(
                f"it has more than {MAX_PARTS:,} parts with its references; one below"
                f" `{UNEVALUATED[0]}` or `{UNEVALUATED[1]}` counts {EVALUATIONS} times"
            )
        if level > MAX_NESTING:
            raise SchemaTooLarge(f"its references lead more than {MAX_NESTING} levels deep")
        if not isinstance(part, Mapping):
            return
        if any(name in part for name in UNEVALUATED):
            times *= EVALUATIONS
        for reference in filter(None, map(part.get, REFERENCES)):
            target = self._target(reference)
            if id(target) in open_parts:
                self.recursions += times
            else:
                self.visit(target, (*open_parts, id(target)), level + 1, times)
        for child in _children(part):
            self.visit(child, open_parts, level + 1, times)

    def _target(self, reference: Any) -> Any:
        """The part that a reference names; True for none, which the validator reports."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        if reference in self.anchors:
            return self.anchors[reference]
        target = self.schema
        for name in unquote(reference[1:]).split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and key.isdecimal() and int(key[:9]) < len(target):
                target = target[int(key)]
            else:
                target = target.get(key, True) if isinstance(target, Mapping) else True
        return target


def largest_depth(schema: Any) -> int:
    """The depth up to which an object can be compared with a schema in `MAX_STEPS`.

    Args:
        schema: A JSON Schema without addresses, nested at most a hundred levels deep.

    Raises:
        SchemaTooLarge: It has more than `MAX_PARTS` parts, or more than `MAX_NESTING` levels.

    >>> largest_depth({"type": "object"})
    100
    >>> largest_depth({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}})
    16
    """
    walk = _Walk(schema)
    walk.visit(schema, (id(schema),))
    if not walk.recursions:
        return MAX_LEVELS
    largest = min(MAX_LEVELS, MAX_FRAMES // walk.levels)
    depth = 0
    while depth < largest and walk.recursions ** (depth + 1) <= MAX_STEPS:
        depth += 1
    return depth


def _children(part: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas within a schema."""
    for name, value in part.items():
        if name in UNUSED:
            continue
        if name in NAMED and isinstance(value, Mapping):
            yield from value.values()
        elif isinstance(value, Mapping):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, Mapping))


def _anchors(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a schema that have a name, and the name."""
    if isinstance(value, Mapping):
        yield from ((value[n], value) for n in ANCHORS if isinstance(value.get(n), str))
    children = value.values() if isinstance(value, Mapping) else value
    for child in children if isinstance(value, Mapping | list) else ():
        yield from _anchors(child)


def has_address(schema: Any) -> bool:
    """Whether a part within a schema has an address of its own, to which others may refer."""
    children = schema.values() if isinstance(schema, Mapping) else schema
    for child in children if isinstance(schema, Mapping | list) else ():
        if (isinstance(child, Mapping) and isinstance(child.get("$id"), str)) or has_address(child):
            return True
    return False
