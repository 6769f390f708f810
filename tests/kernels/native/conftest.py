"""What tests of compiled C share with those of lean bodies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grupo.kernels import native
from tests.helpers import llama_backends
from tests.helpers.native_build import QUICK, Compiler


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own, in which nothing is compiled yet; where it is, it is soon."""
    monkeypatch.setattr(native, "FLAGS", QUICK)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    native.library.cache_clear()
    yield tmp_path / "cache" / "grupo"
    native.library.cache_clear()


@pytest.fixture
def compiler(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """The compiler that will be called, which can be told what to do."""
    made = Compiler(tmp_path / "compiler")
    monkeypatch.setenv("CC", str(made.path))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a tiny Llama lies."""
    return llama_backends.plant(tmp_path / "model", llama_backends.FAMILIES["llama"]())
