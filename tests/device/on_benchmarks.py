"""The GPU benchmark runs every job on a simulated CUDA device, so that none fails on a real one.

flex_attention, captured graphs and compiled functions exist on real devices only. In their place
are plain functions with the same signatures, and graphs that repeat recorded operations.
"""

import time
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_forward
from benchmarks.gpu import measure_jobs
from benchmarks.gpu_sizes import TINY_SIZES
from grupo.inference import static_rows
from grupo.kernels.packing import flex_attention
from tests.helpers.dense_flex_attention import plain_flex_attention
from tests.helpers.recorded_graph import GraphRecorder


@pytest.mark.filterwarnings("ignore")  # of transformers, about the tiny models
@pytest.mark.slow
@pytest.mark.parametrize("table", ["Correctness", ""])
def test_every_job_of_the_gpu_benchmark_runs(table, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(flex_attention, "_compiled_flex", lambda: plain_flex_attention)
    monkeypatch.setattr(gpu_forward, "flex_attention", plain_flex_attention)
    monkeypatch.setattr(static_rows, "CUDACapture", lambda device: GraphRecorder())
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    file = tmp_path / "gpu.json"
    board = measure_jobs(TINY_SIZES, file, time.monotonic() + 600, lambda job: table in job.table)
    failures = [row for row in board.rows if str(row.get("note", "")).startswith("failed")]
    assert not failures, board.errors.read_text()[-6000:]
    assert [row for row in board.rows if row.get("holds") == "NO"] == []
    assert sum(row.get("holds") == "yes" for row in board.rows) >= 5
    assert file.with_suffix(".md").read_text().startswith("# On one GPU")
