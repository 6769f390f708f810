"""What is compared of two runs, and the difference."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.storage import checkpoint, strict_json
from tests.helpers import checkpoint_contents


def outcome(run: Path) -> dict[str, Any]:
    """All that a run came to, but for times: what must be equal bit for bit."""
    found = checkpoint.load(run / "checkpoints")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    summary = strict_json.from_json((run / "summary.json").read_text())
    apart = ("seconds", "lengths", "ledger")  # times are longer or shorter to write down
    return {
        "metrics": [untimed(json.loads(line)) for line in lines],
        "rollouts": (run / "rollouts.jsonl").read_bytes(),
        "actions": (run / "actions.jsonl").read_bytes(),
        "step": found.step,
        "notes": found.notes,
        "weights": {n: checkpoint_contents.bits(x) for n, x in found.tensors["weights"].items()},
        "optimizer": {
            n: checkpoint_contents.bits(x) for n, x in found.tensors["optimizer"].items()
        },
        "past": {n: checkpoint_contents.bits(x) for n, x in found.tensors["history"].items()},
        **{n: strict_json.to_exact_json(x) for n, x in found.data.items() if n not in apart},
        "summary": strict_json.to_json({n: x for n, x in summary.items() if n not in apart}),
        "ledger": [(n, x) for n, x in summary["ledger"].items() if n.startswith("tokens/")],
        "left": sorted(path.name for path in run.rglob("tmp.*")),
    }


def untimed(numbers: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The metrics of a step in their order, times left out."""
    return [(n, x) for n, x in numbers.items() if not n.startswith(("time/", "share/", "speed/"))]


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What is not equal, by name."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def files(run: Path) -> dict[str, bytes]:
    """All that lies in a folder but the lock, which says who has it."""
    found = {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}
    return {name: content for name, content in found.items() if name != "lock"}


def flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
