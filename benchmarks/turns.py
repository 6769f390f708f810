"""The protocol of benchmark workers: wait for a line, do one step, print one line."""

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
    """The worker's end of the channel to the driver; other output goes to standard error."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # output of libraries must not mix with replies
        warnings.simplefilter("ignore")
        torch.set_num_threads(THREADS)

    def ready(self, *packages: str) -> None:
        """Report that loading is done, with the versions of the packages."""
        distributions = packages_distributions()  # vllm has several
        versions = ", ".join(f"{n} {version(distributions.get(n, [n])[0])}" for n in packages)
        self.send(**{"environment": {"versions": versions, "threads": torch.get_num_threads()}})

    def send(self, **measurements: Any) -> None:
        """Send measurements to the driver, with the peak memory of the process."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
        print(json.dumps({"peak": peak, **measurements}), file=self.out, flush=True)

    def wait(self) -> None:
        """Wait for a request; exit when the driver has closed the channel."""
        if not sys.stdin.readline():
            raise SystemExit


def worker_arguments() -> list[str]:
    """The command-line arguments: workload, precision and others."""
    return sys.argv[1:]
