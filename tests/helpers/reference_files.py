"""The JSON files of `tests/reference`: an object for each dataclass, without unknown keys."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.helpers.reference_cases import (
    QUANTITIES,
    BatchInputs,
    PolicyInputs,
    Recorded,
    ReferenceCase,
    Source,
)

FOLDER = Path(__file__).parents[1] / "reference"


@dataclass(frozen=True)
class ReferenceFile:
    """Cases with the same modules.

    Args:
        modules: Modules whose names the code may use.
        sources: Released code by a short name.
        cases: The computations.
    """

    modules: Sequence[str]
    sources: Mapping[str, Source]
    cases: Sequence[ReferenceCase]


def load_cases(folder: Path = FOLDER) -> list[ReferenceCase]:
    """All cases of the JSON files of a folder; raises ValueError for an invalid file."""
    cases = [case for path in sorted(folder.glob("*.json")) for case in load_file(path)]
    names = [str(case) for case in cases]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"cases with the same name: {repeated}")
    return cases


def load_file(path: Path) -> Iterator[ReferenceCase]:
    """The cases of one JSON file."""
    file = _parse(ReferenceFile, json.loads(path.read_text()), path.name)
    sources = {n: _parse(Source, s, f"{path.name}, {n}") for n, s in file.sources.items()}
    for source in sources.values():
        if bool(source.commit) == bool(source.release):
            raise ValueError(f"{path.name}: a source has a commit or a release")
        if source.commit and not re.fullmatch("[0-9a-f]{7,40}", source.commit):
            raise ValueError(f"{path.name}: {source.commit!r} is no commit hash")
    namespace = {name: x for m in file.modules for name, x in vars(import_module(m)).items()}
    for data in file.cases:
        case = _parse_case(data, path.name)
        if unknown := set(case.sources) - set(sources):
            raise ValueError(f"{path.name}: sources {sorted(unknown)} are not defined")
        yield replace(case, file=path.stem, namespace=namespace)


def _parse_case(data: Any, where: str) -> ReferenceCase:
    case = _parse(ReferenceCase, data, where, computed={"file", "namespace"})
    where = f"{where}, {case.code}"
    if unknown := set(case.expected) - set(QUANTITIES):
        raise ValueError(f"{where}: quantities {sorted(unknown)}; known: {[*QUANTITIES]}")
    if not case.expected:
        raise ValueError(f"{where}: no numbers")
    policy = data.get("policy")
    return replace(
        case,
        batch=_parse(BatchInputs, data["batch"], where),
        expected={name: _parse(Recorded, x, where) for name, x in case.expected.items()},
        policy=policy and _parse(PolicyInputs, policy, where),
    )


def _parse(kind: type, data: Any, where: str, computed: Collection[str] = ()):
    """A dataclass from a JSON object; unknown and missing keys are errors."""
    known = {f.name: f for f in fields(kind) if f.name not in computed}
    required = {n for n, f in known.items() if f.default is f.default_factory is MISSING}
    if unknown := sorted(set(data) - set(known)):
        raise ValueError(f"{where}: unknown keys {unknown}; known: {[*known]}")
    if missing := sorted(required - set(data)):
        raise ValueError(f"{where}: missing keys {missing}")
    return kind(**data)
