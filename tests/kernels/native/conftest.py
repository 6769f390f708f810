"""Fixtures for tests that compile C."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grupo.kernels import native
from tests.helpers import llama_backends
from tests.helpers.native_build import FAST_FLAGS, Compiler


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder for compiled libraries; compilation is unoptimised and fast."""
    monkeypatch.setattr(native, "COMPILE_FLAGS", FAST_FLAGS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for cached in (native.library, native._warn_of_fallback):
        cached.cache_clear()
    yield tmp_path / "cache" / "grupo"
    for cached in (native.library, native._warn_of_fallback):
        cached.cache_clear()


@pytest.fixture
def compiler(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """The compiler that will be called; tests set its script."""
    script = Compiler(tmp_path / "compiler")
    monkeypatch.setenv("CC", str(script.path))
    return script


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a tiny Llama."""
    return llama_backends.save_model(tmp_path / "model", llama_backends.FAMILIES["llama"]())
