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
from grupo.catalogue.parse import parse_method
from grupo.core.errors import ConfigError, suggest
from grupo.method import Method, changed_slots

FIRST_LINE_PATTERN = re.compile(
    r"(?P<name>[^:]+): (?P<claim>.+)\. "
    r"(?P<authors>[^.,]+(?: et al\.| and [^.,]+)?), (?P<year>\d{4}), "
    r"(?:arXiv:(?P<arxiv>\d{4}\.\d{4,5})|(?P<venue>[^:]+))\."
)


@dataclass(frozen=True)
class Entry:
    """A method as the table and its page show it."""

    key: str  # the name of its function and of its file
    name: str  # as its authors spell it
    claim: str  # what it does, in a line
    authors: str
    year: int
    arxiv: str  # "" where the paper is elsewhere
    venue: str  # where it is that is not on arXiv
    title: str  # of the paper
    example: str  # a call that works
    changes: tuple[tuple[str, str], ...]  # slots that differ from the default, and what fills them
    use: str  # when it is the one to take
    trl: str  # the options by which TRL has it, verl by which verl has it
    verl: str
    checked: tuple[str, ...]
    catalogue: tuple[str, ...]

    @property
    def search_keys(self) -> tuple[str, ...]:
        """What it is looked for by, in small letters."""
        known = (self.key, self.name.lower(), self.arxiv)
        return tuple(spelling for spelling in known if spelling)

    @property
    def function(self) -> Callable[..., Method]:
        """The function that makes the method."""
        return getattr(import_module(f"grupo.methods.{self.key}"), self.key)

    @property
    def method(self) -> Method:
        """The method that the example makes."""
        return parse_method(self.example)

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
    return tuple(sorted(map(_load_entry, keys), key=lambda entry: (entry.arxiv, entry.key)))


def find_entry(text: str) -> Entry:
    """The entry of a method by its name or by its paper's arXiv number, the first of several.

    >>> find_entry("2503.14476").key, find_entry("Dr. GRPO").key
    ('dapo', 'dr_grpo')
    """
    return search_entries(text)[0]


def search_entries(text: str) -> tuple[Entry, ...]:
    """The entries of that name; by an arXiv number, all of that paper.

    >>> [entry.key for entry in search_entries("arXiv:2507.18071")]
    ['gspo', 'gspo_token']
    """
    wanted = text.lower().removeprefix("arxiv:")
    keyed = tuple(entry for entry in methods() if wanted == entry.key)
    found = keyed or tuple(entry for entry in methods() if wanted in entry.search_keys)
    if not found:
        known = [spelling for entry in methods() for spelling in entry.search_keys]
        raise ConfigError(f"method: {text!r} is not among the methods. {suggest(wanted, known)}")
    return found


def _load_entry(key: str) -> Entry:
    module = import_module(f"grupo.methods.{key}")
    paper = module.PAPER
    said = parse_first_line(module.__doc__ or "", key)
    example = paper.example or key
    return Entry(
        key=key,
        **said,
        title=paper.title,
        example=example,
        changes=tuple(changed_slots(parse_method(example)).items()),
        use=paper.use,
        trl=paper.trl,
        verl=paper.verl,
        checked=paper.checked,
        catalogue=paper.catalogue,
    )


def parse_first_line(doc: str, key: str) -> dict[str, Any]:
    """The fields of a method file's first line.

    >>> parse_first_line("X: does y. Doe et al., 2025, arXiv:2501.00001.", "x")["authors"]
    'Doe et al.'
    """
    line = doc.strip().partition("\n")[0]
    match = FIRST_LINE_PATTERN.fullmatch(line)
    if match is None:
        raise ConfigError(
            f"methods/{key}.py: its first line is {line!r}; it has to read "
            "'Name: claim. Author et al., year, arXiv:number.'"
        )
    return match.groupdict("") | {"year": int(match["year"])}
