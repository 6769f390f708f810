"""The results of a run as tables and lines for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from grupo.report.escape import literal, literal_line
from grupo.report.step_line import format_count, format_duration
from grupo.rollouts.demonstration_scores import DEMONSTRATION_METRICS, LOWER_IS_BETTER
from grupo.rollouts.eval_result import NOT_SCORED_TEXT, EvalResult

TOKEN_LABELS = {
    "generated": "generated",
    "returned": "returned by the sampler",
    "backpropagated": "backpropagated",
    "with_advantage": "with an advantage",
    "unused": "unused",
}
TIME_LABELS = {
    "generate": "generating",
    "score": "scoring",
    "logprobs": "log-probabilities",
    "update": "updating",
    "other": "other",
}
ScoreData = Mapping[str, Any]  # as returned by `EvalResult.to_data`


def eval_table(scores: Mapping[str, Any], criterion: str = "") -> Table:
    """The fraction of held-out tasks solved at the first and at the last evaluation.

    Args:
        scores: `held_out` of `summary.json`: the scores of each evaluation by its label.
        criterion: The criterion of success in words.
    """
    table = Table(title=literal_line(_title(scores, criterion)), title_style="")
    header, *rows = eval_rows(scores)
    table.add_column("")
    for label in header[1:]:
        table.add_column(literal_line(label), justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _title(scores: Mapping[str, Any], criterion: str) -> str:
    if not scores:
        return "no held-out tasks"
    if all(set(DEMONSTRATION_METRICS) <= set(s) and not s["intervals"] for s in scores.values()):
        return "held-out demonstrations"
    solved = f"solved: {criterion}" if criterion else "solved"
    return f"held-out tasks {solved} (95 % intervals)"


def eval_rows(scores: Mapping[str, Any]) -> list[list[str]]:
    """The cells of `eval_table`, of which the first row is the header."""
    ends = list(dict.fromkeys([*list(scores)[:1], *list(scores)[-1:]]))
    shown = [scores[label] for label in ends]
    header = ["", *ends, *["difference"] * (len(ends) == 2)]
    rows = [
        [_label(name), *(_format_share(s, name) for s in shown), *_difference(shown, name)]
        for name in _score_names(shown)
    ]
    return [header, *rows]


def score_table(score: EvalResult) -> Table:
    """The result of one evaluation, with every k of pass@k."""
    data = score.to_data()
    table = Table(title="tasks solved (95 % intervals)", title_style="")
    table.add_column("")
    table.add_column("solved", justify="right")
    names = dict.fromkeys(("greedy", "sampled", *data["intervals"]))
    for name in (n for n in names if n != "pass@1"):
        table.add_row(_label(name), _format_share(data, name))
    table.caption = tokens_text(score.tokens_per_answer)
    return table


def tokens_text(tokens: Mapping[str, float]) -> str:
    """The mean tokens of an answer in words; "" without any.

    >>> tokens_text({"generated": 12.5, "read": 3.0})
    'tokens per answer: 12.5 generated, 3.0 read'
    """
    if not tokens:
        return ""
    return f"tokens per answer: {tokens['generated']:,.1f} generated, {tokens['read']:,.1f} read"


def summary_lines(summary: Mapping[str, Any]) -> list[Text]:
    """`summary.json` without the scores: model, cost, and a warning for failed rollouts."""
    seconds = summary["seconds"]
    failed = summary["failed_rollouts"]
    verb = "was" if failed == 1 else "were"
    lines = [
        literal(f"model: {summary['model']}"),
        literal(
            f"{format_count(summary['steps'], 'step')} in {format_duration(seconds)},"
            f" {format_count(summary['tokens'], 'token')} generated"
        ),
        *(literal(line) for line in _cost_lines(summary["ledger"])),
    ]
    warning = literal(
        f"Warning: {format_count(failed, 'rollout')} could not be scored and {verb} left out."
        " `grupo doctor` shows the errors.",
        "yellow",
    )
    return [*lines, *[warning] * bool(failed)]


def _cost_lines(totals: Mapping[str, float]) -> list[str]:
    """Token counts by use, and the share of each phase of a step."""
    if not totals.get("time/step"):
        return []
    step = totals["time/step"]
    counts = {label: totals.get(f"tokens/{name}", 0.0) for name, label in TOKEN_LABELS.items()}
    uses = (f"{number:,.0f} {label}" for label, number in counts.items())
    times = (
        f"{label} {100 * totals.get(f'time/{name}', 0.0) / step:.0f} %"
        for name, label in TIME_LABELS.items()
    )
    speed = f"{counts['generated'] / step:,.0f} tokens/s"
    return [f"tokens: {', '.join(uses)}; {speed}", f"time of a step: {', '.join(times)}"]


def _score_names(scores: Sequence[ScoreData]) -> list[str]:
    """Greedy, sampled, and pass@k of the largest k that every score has."""
    shared = set.intersection(*(set(s["intervals"]) for s in scores)) if scores else set()
    ks = sorted(int(name.removeprefix("pass@")) for name in shared if name.startswith("pass@"))
    largest = [f"pass@{k}" for k in ks[-1:] if k > 1]
    demonstrated = [name for name in DEMONSTRATION_METRICS if all(name in s for s in scores)]
    if not scores or (demonstrated and not shared):
        return demonstrated if scores else []
    return [*demonstrated, "greedy", "sampled", *largest]


def _label(name: str) -> str:
    labels = {
        "sampled": "sampled (pass@1)",
        "nll": "nll per token",
        "token_accuracy": "token accuracy",
    }
    return labels.get(name, name)


def _format_share(score: ScoreData, name: str) -> str:
    if name not in score:
        return NOT_SCORED_TEXT
    if name in LOWER_IS_BETTER:
        return f"{score[name]:.4g}"
    if name not in score["intervals"]:
        return f"{100 * score[name]:.1f} %"
    low, high = score["intervals"][name]
    return f"{100 * score[name]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _difference(scores: Sequence[ScoreData], name: str) -> list[str]:
    if len(scores) < 2:
        return []
    if any(name not in score for score in scores):
        return [""]
    difference = scores[1][name] - scores[0][name]
    return [f"{difference:+.4g}" if name in LOWER_IS_BETTER else f"{100 * difference:+.1f} points"]
