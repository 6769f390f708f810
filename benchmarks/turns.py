"""How a worker takes turns with others: it waits for a line, does one step, and prints one line."""

import json
import os
import resource
import sys
import warnings
from importlib.metadata import packages_distributions, version
from typing import Any

import torch

from benchmarks.workloads import THREADS


class WorkerChannel:
    """One end of the driver's conversation with a worker; whatever else is printed goes astray."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # a library's own prints are no answers
        warnings.simplefilter("ignore")
        torch.set_num_threads(THREADS)

    def ready(self, *packages: str) -> None:
        """Tell the driver that everything is loaded, and which versions."""
        sold = packages_distributions()  # vllm is installed by other names too
        versions = ", ".join(f"{n} {version(sold.get(n, [n])[0])}" for n in packages)
        self.send(**{"is": {"versions": versions, "threads": torch.get_num_threads()}})

    def send(self, **numbers: Any) -> None:
        """Answer the driver; the process's peak of memory so far is always among the numbers."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
        print(json.dumps({"peak": peak, **numbers}), file=self.out, flush=True)

    def wait(self) -> None:
        """Until it is this worker's turn; leaves when there will be none."""
        if not sys.stdin.readline():
            raise SystemExit


def worker_arguments() -> list[str]:
    """The workload's name, the precision and what else is on the command line."""
    return sys.argv[1:]
