"""The GPU benchmark runs every job on a simulated CUDA device, so that none fails on a real one.

flex_attention, captured graphs and compiled functions exist on real devices only. In their place
are plain functions with the same signatures; that of a graph refuses work that waits.
"""

import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import gpu_forward, gpu_replay
from benchmarks.gpu import measure_jobs
from benchmarks.gpu_sizes import TINY_SIZES
from grupo.kernels.packing import flex_attention
from tests.helpers.simulated_cuda.host_waits import HostWaits


def plain_flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, block_mask: Any, score_mod: Any, **_: Any
) -> Tensor:
    """Attention with all scores, and the mask and softcap of flex_attention."""
    queries, keys = (torch.arange(x.shape[2], device=x.device) for x in (q, k))
    zero = torch.zeros((), dtype=torch.long, device=q.device)
    allowed = block_mask.mask_mod(zero, zero, queries[:, None], keys)
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    scores = (q @ k.mT).float() * scale
    scores = score_mod(scores, zero, zero, queries[:, None], keys) if score_mod else scores
    return scores.masked_fill(~allowed, -inf).softmax(-1).to(v) @ v


def captured(work: Callable[[], Any], memory_pool: Any) -> Callable[[], None]:
    """Work that may not wait for the device, as while a graph is captured."""

    def replay() -> None:
        with HostWaits() as waits:
            work()
        assert waits.count == 0, f"a graph cannot wait for the device: {waits.lines}"

    return replay


@pytest.mark.filterwarnings("ignore")  # of transformers, about the tiny models
@pytest.mark.parametrize("table", ["Correctness", pytest.param("", marks=pytest.mark.slow)])
def test_every_job_of_the_gpu_benchmark_runs(table, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(flex_attention, "_compiled_flex", lambda: plain_flex_attention)
    monkeypatch.setattr(gpu_forward, "flex_attention", plain_flex_attention)
    monkeypatch.setattr(gpu_replay, "capture_graph", captured)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    file = tmp_path / "gpu.json"
    board = measure_jobs(TINY_SIZES, file, time.monotonic() + 600, lambda job: table in job.table)
    failures = [row for row in board.rows if str(row.get("note", "")).startswith("failed")]
    assert not failures, board.errors.read_text()[-6000:]
    assert [row for row in board.rows if row.get("holds") == "NO"] == []
    assert sum(row.get("holds") == "yes" for row in board.rows) >= 5
    assert file.with_suffix(".md").read_text().startswith("# On one GPU")
