"""Measure sampling and updates on one CUDA machine, relative to its peak rates.

    OUT=results python -m benchmarks.gpu --minutes 8.5

The models have random bfloat16 weights and shapes like Qwen3's. Each row is written to gpu.json and
gpu.md, in the folder $OUT or in benchmarks/results, as soon as it is measured. A failed or dropped
row contains a note; `--only "1.7 B" Sampling` measures selected rows in another run. `--tiny` runs
every job with tiny sizes, also without CUDA.
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

# modules, with an attribute of each to load, because transformers imports its parts lazily
REQUIRED_MODULES = {
    "numpy": "array",
    "jaxtyping": "Float",
    "torch": "Tensor",
    "safetensors": "safe_open",
    "transformers": "Qwen3ForCausalLM",
}
VERSIONS = ("torch", "transformers", "triton")


def missing_modules() -> list[str]:
    """Return the modules that cannot be imported, each with the reason."""
    missing = []
    for name, attribute in REQUIRED_MODULES.items():
        try:
            getattr(import_module(name), attribute)
        except ImportError as error:
            missing.append(f"{name}: {error.__cause__ or error}")
    return missing


def measure_jobs(
    sizes: BenchmarkSizes, file: Path, deadline: float, job_filter: Callable[[Job], bool]
) -> ResultBoard:
    """Run the selected jobs until the deadline.

    Args:
        sizes: the sizes of models and batches.
        file: the JSON file of the results.
        deadline: the end of the measurements, in seconds of `time.monotonic`.
        job_filter: selects the jobs to run.
    """
    from benchmarks import gpu_machine as machine
    from benchmarks.gpu_jobs import all_jobs, captions

    bandwidth = machine.copy_bandwidth(sizes)
    matmul_flops = machine.matmul_flops(sizes)
    header: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine.machine_name(),
        **{name: package_version(name) for name in VERSIONS},
        "copy bandwidth (read and write), TB/s": bandwidth / 1e12,
        "bfloat16 matrix product, TFLOP/s": matmul_flops / 1e12,
    }
    board = ResultBoard(file, header, captions(sizes), deadline)
    for job in filter(job_filter, all_jobs(sizes, matmul_flops, bandwidth)):
        board.run_job(job)
    return board


def package_version(package: str) -> str:
    """Return the installed version of a package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--minutes", type=float, default=8.5, help="time limit in minutes, loading included"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="tiny sizes, for a trial on any machine"
    )
    parser.add_argument(
        "--only", nargs="*", default=[], help="only rows whose names contain one of these"
    )
    parser.add_argument("--name", default="", help="name of the result files, without suffix")
    return parser.parse_args()


def main() -> int:
    """Measure; return the number of failed correctness checks, or 2 without the modules."""
    start = time.monotonic()
    args = arguments()
    if missing := missing_modules():
        print("missing modules:", *missing, sep="\n  ", file=sys.stderr)
        return 2
    folder = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    file = folder / f"{args.name or ('gpu-tiny' if args.tiny else 'gpu')}.json"

    def is_selected(job: Job) -> bool:
        names = f"{job.table}, {', '.join(map(str, job.labels.values()))}"
        return not args.only or any(word in names for word in args.only)

    sizes = TINY_SIZES if args.tiny else FULL_SIZES
    board = measure_jobs(sizes, file, start + 60 * args.minutes, is_selected)
    print(f"\n{board.file.with_suffix('.md').read_text()}")
    return sum(row.get("holds") == "NO" for row in board.rows)


if __name__ == "__main__":
    sys.exit(main())
