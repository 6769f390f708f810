"""A mistake of the first hour ends in one message: what was seen, what is allowed, what to do."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from grupo.util.exit_codes import CommandError
from tests.first_hour.mistake import Mistake
from tests.first_hour.mistakes import DIARY, MISTAKES, OTHERS
from tests.helpers.fast_cases import fast_cases
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "bad_input.md"
ROW = re.compile(r"^\| [^|]+ \| `(?P<typed>[^`]+)` \| (?P<message>[^|]+) \|", re.MULTILINE)
MESSAGES = dict(ROW.findall(PAGE.read_text()))
TRIED = [m for m in MISTAKES if not m.on_page]
ON_PAGE = [m for m in MISTAKES if m.on_page]


def last_line(mistake: Mistake) -> str:
    return mistake.typed.strip().splitlines()[-1][-70:]


def files_in(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in paths if "__pycache__" not in path.parts}


def run_python(lines: str) -> tuple[int, str]:
    """The exit code and the message that a script with these lines would end with."""
    try:
        exec(compile(lines, "cell", "exec"), {"__name__": "cell"})
    except CommandError as error:
        return error.exit_code, f"grupo: {error}"
    return 0, ""


@pytest.fixture
def end_of(grupo, folder):
    """What is wrong with the end of a mistake; the folder is as before afterwards."""
    yield lambda mistake: defects_of(mistake, grupo, folder)
    shutil.rmtree(folder / "started", ignore_errors=True)


def defects_of(mistake: Mistake, grupo, folder: Path) -> list[str]:
    before = files_in(folder)
    if mistake.is_python:
        code, message = run_python(mistake.typed)
    else:
        code, _, message = grupo(*shlex.split(mistake.typed))
    defects = mistake.defects(code, message, files_in(folder) - before)
    return [*defects, message] if defects else []


@pytest.mark.parametrize("mistake", fast_cases(4, TRIED), ids=last_line)
def test_a_mistake_ends_in_one_message_with_its_three_parts(end_of, mistake):
    assert end_of(mistake) == []


@pytest.mark.parametrize("mistake", ON_PAGE, ids=last_line)
def test_a_mistake_on_the_page_of_bad_input_has_a_message_with_the_three_parts(mistake):
    assert mistake.missing_parts(MESSAGES[mistake.typed]) == []


def test_the_diary_has_42_mistakes_and_there_are_60_others():
    assert len({m.typed for m in MISTAKES}) == len(MISTAKES)
    assert len(DIARY) >= 42
    assert len(OTHERS) >= 60
    assert {m.place for m in DIARY} == set("23456")


def test_no_mistake_is_tried_here_and_on_the_page_of_bad_input():
    assert not {m.typed.replace(" --run new", "") for m in TRIED} & set(MESSAGES)


@pytest.mark.parametrize(
    ("code", "message", "defect"),
    [
        (2, "grupo: steps: 'x'. Allowed: a number.", "lacks 'Write 5'"),
        (0, "grupo: steps: 'x'. Allowed: a number. Write 5.", "exit code 0"),
        (2, "Traceback (most…)\ngrupo: steps: 'x'. Allowed: a number. Write 5.", "a traceback"),
        (2, "grupo: no.\ngrupo: steps: 'x'. Allowed: a number. Write 5.", "2 messages"),
        (2, "steps: 'x'. Allowed: a number. Write 5.", "0 messages"),
    ],
)
def test_a_planted_weak_message_is_found(code, message, defect):
    mistake = Mistake("train --steps x", "'x'", "Allowed: a number", "Write 5")
    assert mistake.defects(code, message, set()) == [defect]


def test_a_planted_run_folder_is_found():
    message = "grupo: steps: 'x'. Allowed: a number. Write 5."
    mistake = Mistake("train --steps x", "'x'", "Allowed: a number", "Write 5")
    assert mistake.defects(2, message, set()) == []
    assert mistake.defects(2, message, {"new/recipe.json"}) == ["left ['new/recipe.json']"]


def test_a_message_that_an_option_no_longer_gives_is_found(end_of):
    mistake = Mistake("trian --steps 5", "'trian'", "Allowed: ask,", "Did you mean 'grain'?")
    assert end_of(mistake)[0] == "lacks \"Did you mean 'grain'?\""
