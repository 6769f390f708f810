"""Metrics of arms by seed, kept in a folder, so that an interrupted script goes on."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grupo.evidence.claims.paired_table import Runs

Metrics = Mapping[str, float]


def stored_runs(
    folder: Path, arms: Mapping[str, Callable[[int], Metrics]], seeds: Sequence[int]
) -> Runs:
    """Run each arm with each seed and return the metrics; those already in the folder are read.

    Two processes may share the folder if they have other seeds. Delete the folder after changes.

    Args:
        folder: One JSON file per arm and seed.
        arms: Functions by name that train with a seed and return metrics.
        seeds: The seeds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     first = stored_runs(Path(name), {"double": lambda seed: {"x": 2.0 * seed}}, [1, 3])
    ...     again = stored_runs(Path(name), {"double": lambda seed: {"x": 0.0}}, [1, 3])
    >>> first, first == again
    ({'double': [{'x': 2.0}, {'x': 6.0}]}, True)
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[Metrics]] = {name: [] for name in arms}
    for seed in seeds:
        for name, run in arms.items():
            file = folder / f"{name.replace('/', '-')}.{seed}.json"
            if not file.exists():
                metrics = dict(run(seed))
                file.write_text(json.dumps(metrics))
                print(f"{name}, seed {seed}: {metrics}", file=sys.stderr, flush=True)
            runs[name].append(json.loads(file.read_text()))
    return runs
