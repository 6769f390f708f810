"""The comparison of turn strategies that is kept in the folder of a run, for its report."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grupo.core.limits import MEDIA_FILE_SIZE
from grupo.storage import strict_json
from grupo.storage.atomic_files import write_atomically
from grupo.util.errors import ConfigError
from grupo.util.regular_files import read_regular_file

if TYPE_CHECKING:  # its import takes seconds, which a report need not wait for
    from grupo.rollouts.strategy_results import StrategyComparison

STRATEGIES_FILE = "strategies.json"
PICTURE_FILE = "strategies.svg"
COLUMNS = ("strategy", "solved", "95 % interval", "generated", "read", "of other roles")


def keep_comparison(comparison: "StrategyComparison", run: Path) -> Path:
    """Write a comparison into the folder of a run, in place of an earlier one; return the file.

    Its picture is written beside it, if matplotlib is installed.

    Args:
        comparison: Strategies and baselines.
        run: The folder of the run.

    Raises:
        ConfigError: The folder cannot be written.
    """
    file, picture = run / STRATEGIES_FILE, run / PICTURE_FILE
    try:
        picture.unlink(missing_ok=True)  # of an earlier comparison
        write_atomically(file, strict_json.to_json(comparison.to_data()))
    except OSError as error:
        raise ConfigError(f"keep: {str(file)!r}: {error.strerror}.") from error
    if find_spec("matplotlib"):
        from grupo.report.strategy_plot import draw_frontier

        draw_frontier(comparison, picture)
    return file


def strategies_payload(data: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """The kept comparison as the page shows it: a table, and the picture as a data URL.

    Args:
        data: The content of `STRATEGIES_FILE`; empty if there is none.
        run: The folder of the run, for the picture.
    """
    if not data:
        return {}
    picture = run / PICTURE_FILE
    content = read_regular_file(picture, MEDIA_FILE_SIZE) if picture.is_file() else b""
    return {
        "title": f"{data['tasks']} tasks, {data['attempts']} answers of each strategy",
        "columns": COLUMNS,
        "lines": [_line(x) for x in (*data["strategies"], *data["baselines"])],
        "picture": f"data:image/svg+xml;base64,{b64encode(content).decode()}" if content else "",
    }


def _line(result: Mapping[str, Any]) -> list[str]:
    """The cells of a strategy or a baseline."""
    low, high = result["interval"]
    tokens = result["tokens_per_answer"]
    return [
        str(result["name"]),
        f"{100 * result['solved']:.1f} %",
        f"{100 * low:.1f} to {100 * high:.1f}",
        f"{tokens['generated']:,.1f}",
        f"{tokens['read']:,.1f}",
        "; ".join(_other_roles(result)),
    ]


def _other_roles(result: Mapping[str, Any]) -> Iterator[str]:
    """Tokens of roles other than the policy's own, of all answers together."""
    read = result.get("read_by_role", {})
    for role, count in result.get("generated_by_role", {}).items():
        if role:
            yield f"{role}: {count:,} generated, {read.get(role, 0):,} read"
