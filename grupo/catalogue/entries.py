"""One entry per method file: what its docstring, its record and its method say."""

import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import Any

import grupo.methods
from grupo.catalogue.parsing import parse
from grupo.errors import Refused, nearest
from grupo.method import Method, changes

FIRST_LINE = re.compile(
    r"(?P<name>[^:]+): (?P<claim>.+)\. "
    r"(?P<authors>[^.,]+(?: et al\.| and [^.,]+)?), (?P<year>\d{4}), "
    r"arXiv:(?P<arxiv>\d{4}\.\d{4,5})\."
)


@dataclass(frozen=True)
class Entry:
    """A method as the table and its page show it."""

    key: str  # the name of its function and of its file
    name: str  # as its authors spell it
    claim: str  # what it does, in a line
    authors: str
    year: int
    arxiv: str
    title: str  # of the paper
    example: str  # a call that works
    changes: tuple[tuple[str, str], ...]  # slots that differ from the default, and what fills them
    checked: tuple[str, ...]
    catalogue: tuple[str, ...]

    @property
    def function(self) -> Callable[..., Method]:
        """The function that makes the method."""
        return getattr(import_module(f"grupo.methods.{self.key}"), self.key)

    @property
    def method(self) -> Method:
        """The method that the example makes."""
        return parse(self.example)

    @property
    def formula(self) -> str:
        """The docstring of the method's function."""
        return inspect.getdoc(self.function) or ""

    def to_data(self) -> dict[str, Any]:
        """The entry as JSON can hold it."""
        return {**asdict(self), "changes": dict(self.changes)}


@cache
def methods() -> tuple[Entry, ...]:
    """Every method file of the package, by year and number of its paper."""
    keys = [module.name for module in pkgutil.iter_modules(grupo.methods.__path__)]
    return tuple(sorted(map(_entry, keys), key=lambda entry: (entry.arxiv, entry.key)))


def find(text: str) -> Entry:
    """The entry of a method by its name or by its paper's arXiv number.

    >>> find("2503.14476").key, find("Dr. GRPO").key
    ('dapo', 'dr_grpo')
    """
    known = {
        spelling.lower(): entry
        for entry in methods()
        for spelling in (entry.key, entry.name, entry.arxiv)
    }
    wanted = text.lower().removeprefix("arxiv:")
    if wanted not in known:
        raise Refused(f"method: {text!r} is not among the methods. {nearest(wanted, known)}")
    return known[wanted]


def _entry(key: str) -> Entry:
    module = import_module(f"grupo.methods.{key}")
    paper = module.PAPER
    said = first_line(module.__doc__ or "", key)
    example = paper.example or key
    return Entry(
        key=key,
        name=said["name"],
        claim=said["claim"],
        authors=said["authors"],
        year=int(said["year"]),
        arxiv=said["arxiv"],
        title=paper.title,
        example=example,
        changes=tuple(changes(parse(example)).items()),
        checked=paper.checked,
        catalogue=paper.catalogue,
    )


def first_line(doc: str, key: str) -> dict[str, str]:
    """The fields of a method file's first line.

    >>> first_line("X: does y. Doe et al., 2025, arXiv:2501.00001.", "x")["authors"]
    'Doe et al.'
    """
    line = doc.strip().partition("\n")[0]
    match = FIRST_LINE.fullmatch(line)
    if match is None:
        raise Refused(
            f"methods/{key}.py: its first line is {line!r}; it has to read "
            "'Name: claim. Author et al., year, arXiv:number.'"
        )
    return match.groupdict()
