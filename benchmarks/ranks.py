"""Weak scaling: the seconds of a step with the same rows per rank, at several numbers of ranks.

    python -m benchmarks.models size-4M size-25M
    python -m benchmarks.ranks --workload size-4M --ranks 1 2 --repeats 5

Runs with different numbers of ranks alternate; each rank has one thread. Efficiency: the median of
the seconds at one rank by those at N ranks with N times the prompts: 1 is perfect.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.grupo_worker import recipe
from benchmarks.workloads import WORKLOADS
from grupo.config.overrides import apply_overrides
from grupo.recipe import Recipe
from grupo.training.start import run_training

WARMUP = 2  # steps that are not counted
PHASES = ("time/generate", "time/update", "time/step")


def scaled_recipe(workload: str, ranks: int, steps: int, sharding: str) -> Recipe:
    """The recipe of a workload with N times the prompts, and the policy's `sharding`."""
    base = recipe(WORKLOADS[workload], "float32")
    base = apply_overrides(base, [("policy.sharding", sharding)])
    return base.replace(
        prompts_per_step=base.prompts_per_step * ranks, max_steps=WARMUP + steps, save_every=10_000
    )


def measure(workload: str, ranks: int, steps: int, sharding: str) -> list[dict[str, float]]:
    """The metrics of each counted step."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        arguments = [workload, str(ranks), str(steps), sharding, str(run)]
        command = [sys.executable, "-m", "benchmarks.ranks", "--rank-of", *arguments]
        if ranks > 1:
            torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
            command[1:1] = torchrun
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[WARMUP:]]


def report(workload: str, sizes: Sequence[int], repeats: int, steps: int, sharding: str) -> None:
    """Measure alternately and print a table."""
    runs: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for _ in range(repeats):
        for size in sizes:
            runs[size] += measure(workload, size, steps, sharding)
    seconds = {
        size: {name: median(step[name] for step in runs[size]) for name in PHASES} for size in sizes
    }
    print(f"| ranks | {' | '.join(PHASES)} | efficiency of {' | of '.join(PHASES)} |")
    for size in sizes:
        own = [f"{seconds[size][name]:.3f} s" for name in PHASES]
        relative = [f"{seconds[sizes[0]][name] / seconds[size][name]:.3f}" for name in PHASES]
        print(f"| {size} | {' | '.join(own)} | {' | '.join(relative)} |")


def main() -> None:
    """Measure, or train as one of the processes that are measured."""
    if sys.argv[1:2] == ["--rank-of"]:
        workload, ranks, steps, sharding, run = sys.argv[2:]
        run_training(scaled_recipe(workload, int(ranks), int(steps), sharding), run)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", default="size-4M", choices=WORKLOADS)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--sharding", default="None", help="of the policy, such as FSDP2()")
    options = parser.parse_args()
    report(options.workload, options.ranks, options.repeats, options.steps, options.sharding)


if __name__ == "__main__":
    main()
