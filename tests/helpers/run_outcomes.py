"""The outcome of a run: everything that must be equal bit for bit in two runs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.storage import checkpoint, strict_json
from tests.helpers import checkpoint_contents


def outcome(run: Path) -> dict[str, Any]:
    """The last checkpoint, journals and summary of a run, without times."""
    saved = checkpoint.load_newest(run / "checkpoints")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    summary = strict_json.from_json((run / "summary.json").read_text())
    # times, and lengths of journals with times
    times = ("seconds", "total_seconds", "training_seconds")
    excluded = (*times, "lengths", "ledger", "metric_totals")
    return {
        "metrics": [without_times(json.loads(line)) for line in lines],
        "rollouts": (run / "rollouts.jsonl").read_bytes(),
        "responses": (run / "responses.jsonl").read_bytes(),
        "step": saved.step,
        "skipped_checkpoints": saved.skipped_checkpoints,
        "weights": {n: checkpoint_contents.bits(x) for n, x in saved.tensors["weights"].items()},
        "optimizer": {
            n: checkpoint_contents.bits(x) for n, x in saved.tensors["optimizer"].items()
        },
        "ema": {n: checkpoint_contents.bits(x) for n, x in saved.tensors.get("ema", {}).items()},
        "task history": {
            n: checkpoint_contents.bits(x) for n, x in saved.tensors["history"].items()
        },
        "replay_buffer": {
            n: checkpoint_contents.bits(x)
            for n, x in saved.tensors.get("replay_buffer", {}).items()
        },
        "segments": {path.name: path.read_bytes() for path in (run / "replay_buffer").glob("*")},
        **{
            name: strict_json.to_exact_json(value, lambda media: None)
            for name, value in saved.data.items()
            if name not in excluded
        },
        "summary": strict_json.to_json({n: x for n, x in summary.items() if n not in excluded}),
        "ledger": [(n, x) for n, x in summary["ledger"].items() if n.startswith("tokens/")],
        "media": {path.name: path.read_bytes() for path in (run / "media").glob("*")},
        "unfinished files": sorted(path.name for path in run.rglob("tmp.*")),
    }


def without_times(metrics: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The metrics of a step in their order, without times."""
    times = ("time/", "time_frac/", "throughput/")
    return [(name, x) for name, x in metrics.items() if not name.startswith(times)]


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The names of the parts that are not equal."""
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]


def files(run: Path) -> dict[str, bytes]:
    """The contents of all files of a run but the lock."""
    contents = {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}
    return {name: content for name, content in contents.items() if name != "lock"}


def flip_bit(path: Path, at: int = -1) -> None:
    """Flip the lowest bit of one byte."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
