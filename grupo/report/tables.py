"""What a run came to, as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from grupo.report.escape import literal
from grupo.report.step_line import format_duration
from grupo.rollouts.evaluate import EvalResult

TOKEN_LABELS = {
    "sampled": "sampled",
    "trained": "trained",
    "signal": "with signal",
    "wasted": "wasted",
}
TIME_LABELS = {
    "sample": "sampling",
    "judge": "waiting for judges",
    "observe": "measuring",
    "update": "updating",
    "rest": "the rest",
}
ScoreData = Mapping[str, Any]  # what `EvalResult.to_data` gives


def eval_table(scores: Mapping[str, Any]) -> Table:
    """How much of the held-out tasks was solved at the first and at the last evaluation.

    `scores` is `held_out` of `summary.json`; evaluations on the way are left to the curves.
    """
    title = "held-out tasks solved (95 % intervals)" if scores else "no held-out tasks"
    table = Table(title=title, title_style="")
    table.add_column("")
    ends = list(dict.fromkeys([*list(scores)[:1], *list(scores)[-1:]]))
    for when in ends:
        table.add_column(literal(when), justify="right")
    if len(ends) == 2:
        table.add_column("difference", justify="right")
    for name in _score_names([scores[when] for when in ends]):
        shares = [scores[when] for when in ends]
        table.add_row(
            _label(name), *(_format_share(s, name) for s in shares), *_difference(shares, name)
        )
    return table


def score_table(score: EvalResult) -> Table:
    """What one evaluation found, every k of pass@k."""
    shares = score.to_data()
    table = Table(title="tasks solved (95 % intervals)", title_style="")
    table.add_column("")
    table.add_column("share", justify="right")
    for name in (n for n in shares["intervals"] if n != "pass@1"):
        table.add_row(_label(name), _format_share(shares, name))
    return table


def summary_lines(summary: Mapping[str, Any]) -> list[Text]:
    """What `summary.json` says besides the scores, and what there is to worry about."""
    seconds, steps = summary["seconds"], summary["steps"]
    failed = summary["failed_rollouts"]
    lines = [
        literal(f"{summary['method']} on {summary['model']}"),
        literal(
            f"{steps} steps in {format_duration(seconds)}, {summary['tokens']:,} tokens sampled"
        ),
        *(literal(line) for line in _cost_lines(summary["ledger"])),
    ]
    warning = literal(
        f"Warning: {failed} rollouts could not be judged and were left out."
        " `grupo doctor` says why.",
        "yellow",
    )
    return [*lines, *[warning] * bool(failed)]


def _cost_lines(totals: Mapping[str, float]) -> list[str]:
    """What the tokens that were paid for came to, and where the time went."""
    if not totals.get("time/step"):
        return []
    step = totals["time/step"]
    uses = (f"{totals[f'tokens/{name}']:,.0f} {said}" for name, said in TOKEN_LABELS.items())
    times = (
        f"{said} {100 * totals.get(f'time/{name}', 0.0) / step:.0f} %"
        for name, said in TIME_LABELS.items()
    )
    speed = f"{totals['tokens/generated'] / step:,.0f} a second"
    return [f"tokens: {', '.join(uses)}; {speed}", f"time of a step: {', '.join(times)}"]


def _score_names(scores: Sequence[ScoreData]) -> list[str]:
    """Greedy, sampled, and pass@k of the largest k that all have."""
    shared = set.intersection(*(set(s["intervals"]) for s in scores)) if scores else set()
    ks = sorted(int(name.removeprefix("pass@")) for name in shared if name.startswith("pass@"))
    return [n for n in ("greedy", "sampled") if n in shared] + [
        f"pass@{k}" for k in ks[-1:] if k > 1
    ]


def _label(name: str) -> str:
    return {"sampled": "sampled (pass@1)"}.get(name, name)


def _format_share(score: ScoreData, name: str) -> str:
    low, high = score["intervals"][name]
    return f"{100 * score[name]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _difference(scores: Sequence[ScoreData], name: str) -> list[str]:
    if len(scores) < 2:
        return []
    return [f"{100 * (scores[1][name] - scores[0][name]):+.1f} points"]
