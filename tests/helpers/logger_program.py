"""A process that writes into a sink, is killed or ends, and says what the tool then holds."""

import json
import math
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER = struct.Struct("<IHB")  # checksum, length, kind
BLOCK, FULL, LAST = 1 << 15, 1, 4
SETTLED = 1.5  # seconds after which trackio's thread has written what it was given


def recipe() -> Any:
    from grupo import CausalLM, ReasoningGym, Recipe, RewardTerm, SingleTurn
    from grupo.rewards import ExactMatch

    world = SingleTurn((RewardTerm("right", ExactMatch()),))
    return Recipe(CausalLM("model"), world, ReasoningGym("chain_sum", 50), max_steps=3)


def write(tool: str, run: Path, first: int, last: int, how: str) -> None:
    from grupo.report import loggers

    run.mkdir(exist_ok=True)
    sink = {"trackio": loggers.TrackioLogger, "wandb": loggers.WandbLogger}[tool](run)
    sink.begun(recipe(), first)
    for step in range(first, last):
        sink.on_step_end(step, {"reward/mean": step / 2, "policy/kl_ref": math.nan})
    if how == "die":
        time.sleep(SETTLED)
        os.kill(os.getpid(), signal.SIGKILL)
    sink.ended()
    assert not sink.broken


def of_trackio(run: Path) -> dict[str, Any]:
    from trackio.sqlite_storage import SQLiteStorage

    runs = SQLiteStorage.get_runs("grupo")
    rows = SQLiteStorage.get_logs("grupo", runs[0])
    return {"runs": runs, "rows": rows, "config": SQLiteStorage.get_run_config("grupo", runs[0])}


def of_wandb(run: Path) -> dict[str, Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    runs, rows, config = set(), [], {}
    for path in sorted(run.glob("wandb/offline-run-*/*.wandb")):
        for record in map(Record.FromString, logged(path.read_bytes())):
            if record.HasField("run"):
                runs.add(record.run.run_id)
                config |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
            if record.HasField("history"):
                items = ((i.key or i.nested_key[0], i.value_json) for i in record.history.item)
                row = {name: json.loads(value) for name, value in items}
                rows.append({**row, "step": record.history.step.num})
    return {"runs": sorted(runs), "rows": rows, "config": config}


def logged(data: bytes) -> Iterator[bytes]:
    """The records of a log as LevelDB writes it, after a header as long as a record's."""
    place, parts = HEADER.size, []
    while place + HEADER.size <= len(data):
        if (left := BLOCK - place % BLOCK) < HEADER.size:
            place += left  # padding
            continue
        _, length, kind = HEADER.unpack_from(data, place)
        parts.append(data[place + HEADER.size : place + HEADER.size + length])
        place += HEADER.size + length
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts = []


def plain(value: Any) -> Any:
    """NaN as the journal writes it."""
    return "NaN" if value != value else value


if __name__ == "__main__":
    tool, place, *how = sys.argv[1:]
    run = Path(place)
    if how == ["read"]:
        found = {"trackio": of_trackio, "wandb": of_wandb}[tool](run)
        rows = [{name: plain(x) for name, x in row.items()} for row in found["rows"]]
        print(json.dumps({**found, "rows": rows}))
    else:
        write(tool, run, int(how[0]), int(how[1]), how[2])
