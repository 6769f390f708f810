"""A cache of its own for each test, and a GGUF file."""

from pathlib import Path

import pytest

from tests.helpers.tiny_gguf import write_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds the converted models; nothing has made it yet."""
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "models"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A tiny Llama in float32."""
    return write_gguf(tmp_path / "tiny.gguf")
