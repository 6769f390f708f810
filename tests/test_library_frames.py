"""The lines of the library that the tests report, wherever the repository lies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.library_frames import PACKAGE, library_lines
from tests.helpers.repeated_index import RepeatedIndexCheck

LIBRARY = PACKAGE / "core" / "batch.py"
# as in every clone: the virtual environment lies in the folder `grupo`
TORCH = PACKAGE.parent.with_name("grupo") / ".venv/lib/python3.11/site-packages/torch/nn/module.py"


def caller(file: Path) -> Callable[..., Any]:
    """A function in line 1 of a file, which calls its first argument with the others."""
    names: dict[str, Any] = {}
    exec(compile("def call(f, *arguments): return f(*arguments)", file, "exec"), names)
    return names["call"]


@pytest.mark.parametrize("outside", [TORCH, PACKAGE.parent / "tests/x.py", Path("<string>")])
def test_a_frame_of_another_package_in_a_folder_named_grupo_is_no_library_line(outside: Path):
    assert caller(outside)(library_lines) == []
    assert caller(LIBRARY)(caller(outside), library_lines) == ["core/batch.py:1"]


def test_the_innermost_line_of_the_library_is_the_last():
    assert caller(PACKAGE / "trainer.py")(caller(TORCH), caller(LIBRARY), library_lines) == [
        "trainer.py:1",
        "core/batch.py:1",
    ]


def test_lines_are_found_through_a_symbolic_link(tmp_path):
    (tmp_path / "link").symlink_to(PACKAGE)
    assert caller(tmp_path / "link/core/batch.py")(library_lines) == ["core/batch.py:1"]


def test_a_repeated_index_is_reported_with_the_library_line_that_calls_torch():
    index, values = torch.tensor([0, 0]), torch.tensor([1.0, 2.0])
    with RepeatedIndexCheck() as check:
        caller(LIBRARY)(caller(TORCH), torch.zeros(3).index_put_, (index,), values)
    assert check.reports == ["aten.index_put_.default < core/batch.py:1"]
