"""Sampling and updates on one CUDA machine, against what it can do at most.

    OUT=results python -m benchmarks.gpu --minutes 8.5

Models have random weights in bfloat16 and shapes like Qwen3's. Rows are written to gpu.json and
gpu.md, in the folder that OUT names or in benchmarks/results, each as soon as it is measured. What
fails says so, and what there is no time for, which `--only "1.7 B" Sampling` may measure in another
run. `--tiny` goes the same ways with next to nothing, and off CUDA too.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks.gpu_board import Job, ResultBoard
from benchmarks.gpu_sizes import FULL_SIZES, TINY_SIZES, BenchmarkSizes

# modules, and something of each: transformers loads what it needs when it is asked for more
REQUIRED_MODULES = {
    "numpy": "array",
    "jaxtyping": "Float",
    "torch": "Tensor",
    "safetensors": "safe_open",
    "transformers": "Qwen3ForCausalLM",
}
VERSIONS = ("torch", "transformers", "triton")


def missing_modules() -> list[str]:
    """What cannot be imported, and why."""
    found = []
    for name, something in REQUIRED_MODULES.items():
        try:
            getattr(import_module(name), something)
        except ImportError as error:
            found.append(f"{name}: {error.__cause__ or error}")
    return found


def measure_jobs(
    sizes: BenchmarkSizes, file: Path, deadline: float, job_filter: Callable[[Job], bool]
) -> ResultBoard:
    """Every wanted row there is time for."""
    from benchmarks import gpu_machine as machine
    from benchmarks.gpu_jobs import all_jobs, captions

    bandwidth, flop = machine.copy_bandwidth(sizes), machine.matmul_flops(sizes)
    about: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine.machine_name(),
        **{name: package_version(name) for name in VERSIONS},
        "copying, TB/s read and written": bandwidth / 1e12,
        "product of matrices in bfloat16, TFLOP/s": flop / 1e12,
    }
    board = ResultBoard(file, about, captions(sizes), deadline)
    for job in filter(job_filter, all_jobs(sizes, flop, bandwidth)):
        board.run_job(job)
    return board


def package_version(package: str) -> str:
    """What is installed of it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not there"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=8.5, help="all of it, loading included")
    parser.add_argument("--tiny", action="store_true", help="to try it out, on any machine")
    parser.add_argument("--only", nargs="*", default=[], help="rows whose names contain one of it")
    parser.add_argument("--name", default="", help="of the files, without .json")
    return parser.parse_args()


def main() -> int:
    """Measure; how many ways were not the same as they should."""
    began, args = time.monotonic(), arguments()
    if found := missing_modules():
        print("This needs more than is here:", *found, sep="\n  ", file=sys.stderr)
        return 2
    folder = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    file = folder / f"{args.name or ('gpu-tiny' if args.tiny else 'gpu')}.json"

    def wanted(job: Job) -> bool:
        names = f"{job.table}, {', '.join(map(str, job.labels.values()))}"
        return not args.only or any(word in names for word in args.only)

    board = measure_jobs(
        TINY_SIZES if args.tiny else FULL_SIZES, file, began + 60 * args.minutes, wanted
    )
    print(f"\n{board.file.with_suffix('.md').read_text()}")
    return sum(row.get("holds") == "NO" for row in board.rows)


if __name__ == "__main__":
    sys.exit(main())
