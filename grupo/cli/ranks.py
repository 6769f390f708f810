"""The command `grupo ranks`."""

import json
import time
from typing import TYPE_CHECKING

from grupo.cli.inspect import JsonOption
from grupo.cli.options import RunArgument
from grupo.util.console import print_line
from grupo.util.run_files import RECIPE_JSON, SUMMARY_FILE

if TYPE_CHECKING:
    from grupo.distributed.rank_report import RankPlace

SILENCE = 10.0  # seconds without a sign of life after which no rank is taken to run


def ranks(run: RunArgument, as_json: JsonOption = False) -> None:
    """Show where every rank of a run is: step, phase, machine and process."""
    from dataclasses import asdict

    from grupo.distributed.rank_report import RANK_REPORT_FILE, read_report
    from grupo.util.errors import ConfigError
    from grupo.util.user_paths import no_run_message

    if not (run / RECIPE_JSON).is_file():
        raise ConfigError(no_run_message(run))
    places = read_report(run / RANK_REPORT_FILE)
    is_finished = (run / SUMMARY_FILE).is_file()
    now = time.time()
    if as_json:
        state = "finished" if is_finished else _state(places, now)
        data = {"state": state, "time": now, "ranks": [asdict(place) for place in places]}
        return print_line(json.dumps(data))
    print_line(f"{run}: {_summary(places, now, is_finished=is_finished)}")
    for line in _table(places, now):
        print_line(line)


def _state(places: "list[RankPlace]", now: float) -> str:
    """Whether the ranks of an unfinished run are running."""
    if not places:
        return "unknown"
    return "running" if now - max(place.seen for place in places) <= SILENCE else "stopped"


def _summary(places: "list[RankPlace]", now: float, *, is_finished: bool) -> str:
    if is_finished:
        return "finished."
    if not places:
        return "one process trains it; only several ranks report where they are."
    if _state(places, now) == "running":
        silent = [place.rank for place in places if now - place.seen > SILENCE]
        lost = f"; no sign of life from {', '.join(f'rank {rank}' for rank in silent)}"
        return f"{len(places)} ranks are running{lost if silent else ''}."
    age = now - max(place.seen for place in places)
    return (
        f"stopped before its end: no rank showed a sign of life for {age:.0f} s. `grupo resume`"
        " continues it."
    )


def _table(places: "list[RankPlace]", now: float) -> list[str]:
    """One line per rank below a line of headings."""
    if not places:
        return []
    rows = [("rank", "host", "process", "step", "phase reached", "reached", "last seen")]
    rows += [
        (
            str(place.rank),
            place.host,
            str(place.process),
            str(place.step),
            place.phase,
            f"{max(0.0, now - place.since):.0f} s ago",
            f"{max(0.0, now - place.seen):.0f} s ago",
        )
        for place in places
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
