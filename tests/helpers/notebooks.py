"""Notebooks that are built and executed in a real kernel."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.helpers.paths import ROOT

TIMEOUT = 240  # seconds for a cell: the first one imports torch and transformers
SETUP = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nimport torch\ntorch.set_num_threads(1)"


def execute(cells: Sequence[str], folder: Path) -> list[Any]:
    """The executed cells of a notebook whose working directory is a folder."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *cells)]
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=resources)
    client.execute(env={**os.environ, "IPYTHONDIR": str(folder / ".ipython")})
    return notebook.cells[1:]


def output_text(cell: Any, kind: str = "text/plain") -> str:
    """What a cell printed and displayed, in one representation."""
    texts = []
    for output in cell.outputs:
        texts.append(output.text if output.output_type == "stream" else output.data.get(kind, ""))
    return "\n".join(texts)
