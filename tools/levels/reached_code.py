"""The code of an experiment that a test or a script reaches: imports, calls and files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tools.levels.definitions import Uses, definitions, imports_of, uses_of

ROOT = Path(__file__).parents[2]
# folders whose files belong to an experiment and are read; other imports are noted by name
EXPERIMENTS = ("recipes", "benchmarks", "tests", "grupo/toy", "grupo/evidence/claims")

Start = tuple[Path, str]  # a file and the name of a definition in it; "" is the whole file


@dataclass
class ReachedCode:
    """What a place reaches.

    Args:
        imports: Dotted names that are used, such as `grupo.models.causal_lm.CausalLM`.
        calls: Names of the functions and methods that are called.
        repeated_calls: Those that are called inside a loop.
        files: Files of experiments that are read.
    """

    imports: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    repeated_calls: set[str] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)


def reached_code(starts: Iterable[Start]) -> ReachedCode:
    """The code that is reached from some definitions, through files of experiments."""
    reached = ReachedCode()
    frontier = list(starts)
    seen = set(frontier)
    while frontier:
        path, name = frontier.pop()
        uses = uses_of(path, name)
        reached.files.add(path)
        reached.calls |= uses.calls
        reached.repeated_calls |= uses.repeated_calls
        reached.imports |= _used_imports(path, name)
        new = _next_definitions(path, name) - seen
        seen |= new
        frontier += new
    return reached


@cache
def _next_definitions(path: Path, name: str) -> frozenset[Start]:
    """The definitions that one uses: of the same file, of imported and of loaded files."""
    uses = uses_of(path, name)
    return frozenset((*_used_here(path, uses), *_imported(path, uses), *_loaded(path, uses)))


@cache
def _used_imports(path: Path, name: str) -> frozenset[str]:
    imports = imports_of(path)
    return frozenset(imports[used] for used in uses_of(path, name).names & set(imports))


def _used_here(path: Path, uses: Uses) -> Iterator[Start]:
    yield from ((path, name) for name in uses.names & set(definitions(path)))


def _imported(path: Path, uses: Uses) -> Iterator[Start]:
    for name in uses.names & set(imports_of(path)):
        module, _, member = imports_of(path)[name].rpartition(".")
        if file := _experiment_file(path.parent, imports_of(path)[name]):
            yield from _members(file, uses.attributes)
        elif file := _experiment_file(path.parent, module):
            yield file, member


def _loaded(path: Path, uses: Uses) -> Iterator[Start]:
    in_definitions = (uses_of(path, name).loaded for name in uses.names & set(definitions(path)))
    for pattern in uses.loaded.union(*in_definitions):
        for file in sorted(ROOT.glob(pattern)):
            yield from _members(file, uses.attributes)


def _members(file: Path, names: Iterable[str]) -> Iterator[Start]:
    yield from ((file, name) for name in names if name in definitions(file))


@cache
def _experiment_file(folder: Path, dotted: str) -> Path | None:
    """The file of a module, in the folder of the importing script or from the root."""
    parts = dotted.replace(".", "/")
    for path in (folder / f"{parts}.py", ROOT / f"{parts}.py"):
        is_read = any(path.is_relative_to(ROOT / folder) for folder in EXPERIMENTS)
        if parts and is_read and path.is_file():
            return path
    return None
