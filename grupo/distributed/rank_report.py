"""The file `ranks.json` of a run: where every rank is, written by the first rank each second."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grupo.storage import strict_json
from grupo.util.errors import ConfigError

RANK_REPORT_FILE = "ranks.json"
TEMPORARY = "tmp.ranks.json"


@dataclass(frozen=True)
class RankPlace:
    """Where a rank is.

    Args:
        rank: from 0.
        host: its machine.
        process: id of its process.
        step: that it works on, from 1; 0 before the first.
        phase: the last that it reached.
        since: when it reached the phase, in seconds since 1970.
        seen: when it last showed that it is alive.
    """

    rank: int
    host: str
    process: int
    step: int
    phase: str
    since: float
    seen: float


def write_report(file: Path, places: Sequence[RankPlace]) -> None:
    """Replace the report; a reader sees the old or the new one."""
    temporary = file.with_name(TEMPORARY)
    temporary.write_text(strict_json.to_json([asdict(place) for place in places]))
    os.replace(temporary, file)


def read_report(file: Path) -> list[RankPlace]:
    """The places of all ranks; none if the file is missing.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        return [RankPlace(**entry) for entry in strict_json.from_json(file.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{file}: it is damaged. Ranks that run replace it; otherwise remove it."
        ) from error
