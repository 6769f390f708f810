"""A program that logs a run and is killed or ends, or prints what the tool has logged."""

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
FLUSH_SECONDS = 1.5  # after which trackio's thread has written the logged steps


def recipe() -> Any:
    from grupo import CausalLM, ReasoningGym, Recipe, RewardTerm, SingleTurn
    from grupo.rewards import ExactMatch

    env = SingleTurn((RewardTerm("right", ExactMatch()),))
    return Recipe(CausalLM("model"), env, ReasoningGym("chain_sum", 50), max_steps=3)


def write(tool: str, run: Path, first: int, last: int, end: str) -> None:
    from grupo.report import loggers

    run.mkdir(exist_ok=True)
    logger = {"trackio": loggers.TrackioLogger, "wandb": loggers.WandbLogger}[tool](run)
    logger.on_train_begin(recipe(), first)
    for step in range(first + 1, last + 1):
        logger.on_step_end(step, {"reward/mean": step / 2, "policy/kl_ref": math.nan})
    if end == "die":
        time.sleep(FLUSH_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)
    logger.on_train_end()
    assert not logger.has_failed


def read_trackio(run: Path) -> dict[str, Any]:
    from trackio.sqlite_storage import SQLiteStorage

    runs = SQLiteStorage.get_runs("grupo")
    rows = SQLiteStorage.get_logs("grupo", runs[0])
    return {"runs": runs, "rows": rows, "config": SQLiteStorage.get_run_config("grupo", runs[0])}


def read_wandb(run: Path) -> dict[str, Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    runs, rows, config = set(), [], {}
    for path in sorted(run.glob("wandb/offline-run-*/*.wandb")):
        for record in map(Record.FromString, log_records(path.read_bytes())):
            if record.HasField("run"):
                runs.add(record.run.run_id)
                config |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
            if record.HasField("history"):
                items = ((i.key or i.nested_key[0], i.value_json) for i in record.history.item)
                row = {name: json.loads(value) for name, value in items}
                rows.append(row)
    return {"runs": sorted(runs), "rows": rows, "config": config}


def log_records(data: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log, which follow a header as long as a record's header."""
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


def json_value(value: Any) -> Any:
    """NaN as the string that the journal has."""
    return "NaN" if value != value else value


if __name__ == "__main__":
    tool, folder, *arguments = sys.argv[1:]
    run = Path(folder)
    if arguments == ["read"]:
        log = {"trackio": read_trackio, "wandb": read_wandb}[tool](run)
        rows = [{name: json_value(x) for name, x in row.items()} for row in log["rows"]]
        print(json.dumps({**log, "rows": rows}))
    else:
        write(tool, run, int(arguments[0]), int(arguments[1]), arguments[2])
