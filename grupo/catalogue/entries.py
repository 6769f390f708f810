"""Catalogue entries: one per method file, from its docstring, its paper record and its method."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib import import_module
from math import isfinite
from typing import Any

import grupo.methods
from grupo.catalogue.levels import level_of
from grupo.catalogue.parse import parse_method
from grupo.core.component import to_code
from grupo.core.paper import Paper, Source, check_tags
from grupo.method import Method, changed_slots
from grupo.recipe import updates_per_step
from grupo.util.errors import ConfigError

FIRST_LINE_PATTERN = re.compile(
    r"(?P<name>[^:]+): (?P<claim>.+)\. "
    r"(?P<authors>[^.,]+(?: et al\.| and [^.,]+)?), (?P<year>\d{4}), "
    r"(?:arXiv:(?P<arxiv>\d{4}\.\d{4,5})|(?P<venue>[^:]+))\."
)
ARGUMENT_PATTERN = re.compile(r"^(?P<name>\w+): (?P<meaning>.+(?:\n\s.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A method of the library with the facts about its paper.

    Args:
        key: Name of the method's function and of its file.
        name: Name of the method in its paper.
        claim: The method's idea in one line.
        authors: Authors of the paper.
        year: Year of the paper.
        arxiv: arXiv number of the paper; "" if it has none.
        venue: Where the paper was published if not on arXiv.
        title: Title of the paper.
        example: A call that works, with the required arguments.
        changes: Slots that differ from the default method, each with the code that fills it.
        use: When to choose the method.
        tags: Subjects of the method, from `grupo.core.paper.TAGS`.
        trl: The options by which TRL implements it.
        verl: The options by which verl implements it.
        checked: How the implementation was checked.
        catalogue: Ids of the rows of the project's catalogue that the method implements.
        source: What the formula was taken from; None before the audit.
        plan: Where the number of updates per step comes from.
        missing: What the paper has and the method has not.
        deviations: Where the method departs from its source, and why.
        audit: How a second reader compared the file with its source.
        equals_grpo_when: Condition under which the gradient is that of GRPO; "" if there is none.
        shown: Tests and tables of the paper's claim.
    """

    key: str
    name: str
    claim: str
    authors: str
    year: int
    arxiv: str
    venue: str
    title: str
    example: str
    changes: tuple[tuple[str, str], ...]
    use: str
    tags: tuple[str, ...]
    trl: str
    verl: str
    checked: tuple[str, ...]
    catalogue: tuple[str, ...]
    source: Source | None
    plan: str
    missing: tuple[str, ...]
    deviations: tuple[str, ...]
    audit: str
    equals_grpo_when: str
    shown: tuple[str, ...]

    @property
    def search_keys(self) -> tuple[str, ...]:
        """Texts, in lower case, by which a search finds the method."""
        keys = (self.key, self.name.lower(), self.arxiv)
        return tuple(key for key in keys if key)

    @property
    def level(self) -> str:
        """How far the evidence about the paper's claim goes, a name of `LEVELS`."""
        return level_of(self.shown)

    @property
    def function(self) -> Callable[..., Method]:
        """The function that returns the method."""
        return getattr(import_module(f"grupo.methods.{self.key}"), self.key)

    @cached_property
    def method(self) -> Method:
        """The method that the example returns."""
        return parse_method(self.example)

    @property
    def formula(self) -> str:
        """The docstring of the method's function, without its description of the arguments."""
        return self._docstring_parts[0].strip()

    @property
    def argument_meanings(self) -> dict[str, str]:
        """The description of each argument in the docstring of the method's function."""
        arguments = inspect.cleandoc(self._docstring_parts[2])
        matches = ARGUMENT_PATTERN.finditer(arguments)
        return {match["name"]: " ".join(match["meaning"].split()) for match in matches}

    @property
    def _docstring_parts(self) -> tuple[str, str, str]:
        """The docstring before, at and after its line `Args:`."""
        return (inspect.getdoc(self.function) or "").partition("\nArgs:\n")

    def plan_data(self) -> dict[str, Any]:
        """The update plan: its code, its number of updates per step, and where that comes from.

        The number is None for a plan that does not fix it in advance.
        """
        updates = self.method.updates
        return {
            "code": to_code(updates),
            "updates_per_step": updates_per_step(updates) or None,
            "source": self.plan,
        }

    def reward_range_data(self) -> list[float | None] | None:
        """Smallest and largest reward that the method expects; None where it has no limit."""
        bounds = self.method.requires.reward_range
        return bounds and [bound if isfinite(bound) else None for bound in bounds]

    def to_data(self) -> dict[str, Any]:
        """The entry as JSON can hold it."""
        plan = self.plan_data()
        return {
            **asdict(self),
            "changes": dict(self.changes),
            "plan": plan,
            "reward_range": self.reward_range_data(),
            "level": self.level,
        }


@cache
def methods() -> tuple[Entry, ...]:
    """The entries of all method files, by the arXiv number of the paper."""
    keys = [module.name for module in pkgutil.iter_modules(grupo.methods.__path__)]
    return tuple(sorted(map(_load_entry, keys), key=lambda entry: (entry.arxiv, entry.key)))


def tagged_entries(entries: Iterable[Entry], tags: Iterable[str]) -> tuple[Entry, ...]:
    """The entries that have all of the tags.

    Raises:
        ConfigError: A tag is not in `grupo.core.paper.TAGS`.

    >>> [entry.key for entry in tagged_entries(methods(), ["critic", "clipping"])]
    ['ppo', 'vapo']
    """
    required = frozenset(tags)
    check_tags(sorted(required), where="tag")
    return tuple(entry for entry in entries if required <= {*entry.tags})


def _load_entry(key: str) -> Entry:
    module = import_module(f"grupo.methods.{key}")
    paper = getattr(module, "PAPER", None)
    if not isinstance(paper, Paper):
        raise ConfigError(
            f"{module.__file__}: PAPER: {paper!r}. A file of grupo/methods has a record of its"
            ' paper at its end: PAPER = Paper(title="...", use="...", tags=(...), checked=(...)).'
        )
    example = paper.example or key
    return Entry(
        key=key,
        **parse_first_line(module.__doc__ or "", key),
        title=paper.title,
        example=example,
        changes=tuple(changed_slots(parse_method(example)).items()),
        use=paper.use,
        tags=paper.tags,
        trl=paper.trl,
        verl=paper.verl,
        checked=paper.checked,
        catalogue=paper.catalogue,
        source=paper.source,
        plan=paper.plan,
        missing=paper.missing,
        deviations=paper.deviations,
        audit=paper.audit,
        equals_grpo_when=paper.equals_grpo_when,
        shown=paper.shown,
    )


def parse_first_line(doc: str, key: str) -> dict[str, Any]:
    """Parse the first line of a method file's docstring into fields of its entry.

    Args:
        doc: The docstring.
        key: Name of the file, for the message.

    Raises:
        ConfigError: The line has another form.

    >>> parse_first_line("X: does y. Doe et al., 2025, arXiv:2501.00001.", "x")["authors"]
    'Doe et al.'
    """
    line = doc.strip().partition("\n")[0]
    match = FIRST_LINE_PATTERN.fullmatch(line)
    if match is None:
        raise ConfigError(
            f"methods/{key}.py: its first line is {line!r}; it must be "
            "'Name: claim. Author et al., year, arXiv:number.'"
        )
    return match.groupdict("") | {"year": int(match["year"])}
