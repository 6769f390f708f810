"""Groups of rank processes that train, and what they wrote."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.helpers import rank_program
from tests.helpers.paths import CHILD_ENV

CLOCK = ("time/", "time_frac/", "throughput/")  # metrics that differ between runs


class RankProcesses:
    """Trains recipes at any number of ranks, in runs below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, rank_program.__file__, root / "model"],
            env={**os.environ, **CHILD_ENV, **one_thread},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, do: str, run: Path, ranks: int, **options: Any) -> list[Mapping[str, Any]]:
        assert self.process.stdin
        assert self.process.stdout
        request = {"do": do, "run": str(run), "ranks": ranks, **options}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def trained(self, recipe: str, ranks: int, name: str = "", **options: Any) -> "Written":
        """The run of a recipe, trained at the first call."""
        run = self.root / (name or f"{recipe} {ranks}")
        if not (run / "summary.json").exists():
            results = self("train", run, ranks, recipe=recipe, **options)
            assert [result["error"] for result in results] == [""] * ranks
        return Written.of(run)


@dataclass(frozen=True)
class Written:
    """What a run wrote, without what depends on the clock."""

    rollouts: list[dict[str, Any]]
    responses: list[dict[str, Any]]
    metrics: list[dict[str, float]]
    weights: Mapping[str, Tensor]
    scores: Mapping[str, Any]

    @staticmethod
    def of(run: Path) -> "Written":
        journals = {
            name: [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]
            for name in ("rollouts", "responses", "metrics")
        }
        metrics = [
            {name: x for name, x in step.items() if not name.startswith(CLOCK)}
            for step in journals["metrics"]
        ]
        newest = max((run / "checkpoints").glob("step-*"))
        summary = json.loads((run / "summary.json").read_text())
        for score in summary["held_out"].values():
            del score["tokens_per_answer"]["read"]  # each rank has a prefix cache of its own
        return Written(
            journals["rollouts"],
            journals["responses"],
            metrics,
            load_file(newest / "weights.safetensors"),
            summary["held_out"],
        )


@pytest.fixture(scope="session")
def rank_processes(tmp_path_factory):
    processes = RankProcesses(tmp_path_factory.mktemp("ranks"))
    with processes.process:  # closes its pipes
        yield processes


def largest_difference(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """The norm of the difference, relative to the norm of `b`."""
    assert a.keys() == b.keys()
    difference = torch.stack([(a[name].double() - b[name].double()).norm() for name in a]).norm()
    return float(difference / torch.stack([x.double().norm() for x in b.values()]).norm())
