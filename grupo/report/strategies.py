"""Comparisons of turn strategies as a table and as sentences."""

from collections.abc import Iterator

from rich.table import Table

from grupo.report.escape import literal
from grupo.rollouts.strategy_results import AtEqualTokens, StrategyComparison, StrategyResult
from grupo.util.statistics import Interval


def strategy_table(comparison: StrategyComparison) -> Table:
    """Strategies, then baselines: accuracy with its interval, and the tokens of an answer.

    A star marks results that no cheaper result reaches: the frontier of accuracy over tokens.
    """
    baselines = (comparison.greedy, *comparison.votes, *comparison.best_of_n)
    best = {result.name for result in frontier((*comparison.strategies, *baselines))}
    table = Table(title=_title(comparison), title_style="")
    table.add_column("strategy", overflow="fold")
    for header in ("solved", "generated", "read", "seconds", "frontier"):
        table.add_column(header, justify="right")
    for result in comparison.strategies:
        table.add_row(*map(literal, _cells(result, best)))
    table.add_section()
    for result in baselines:
        table.add_row(*map(literal, _cells(result, best)))
    return table


def frontier(results: tuple[StrategyResult, ...]) -> list[StrategyResult]:
    """The results that no other one with at most as many tokens reaches, by their tokens."""
    kept: list[StrategyResult] = []
    for result in sorted(results, key=lambda x: (x.tokens_per_attempt, -x.accuracy.value)):
        if not kept or result.accuracy.value > kept[-1].accuracy.value:
            kept.append(result)
    return kept


def comparison_lines(comparison: StrategyComparison) -> Iterator[str]:
    """Paired differences in sentences, and what was counted within the strategies."""
    first = comparison.strategies[0].name
    for result in comparison.strategies:
        if difference := result.difference_to_first:
            yield f"{result.name}: {_points(difference)} against {first}, paired by task"
        if result.at_equal_tokens:
            yield _against_self_consistency(result, result.at_equal_tokens)
        yield from _notes(result)
    yield (
        "Vote(n), by votes, and BestOf(n), by mean log-probability, below the line are computed"
        " from the same single attempts. A prompt is read once for all attempts at an answer."
    )


def _against_self_consistency(result: StrategyResult, equal: AtEqualTokens) -> str:
    tokens = "the nearest tokens that were measured" if equal.is_clamped else "the same tokens"
    verdict = {
        "below": "below self-consistency",
        "above": "above self-consistency",
        "no difference shown": "no difference shown to self-consistency",
    }[equal.verdict]
    return (
        f"{result.name}: {verdict} with {tokens} ({equal.attempts:.3g} attempts,"
        f" {_percent(equal.self_consistency)}): {_points(equal.difference)}"
    )


def _notes(result: StrategyResult) -> Iterator[str]:
    """Counts of a strategy: votes, revisions, calls of other models, tokens of other roles."""
    usage = dict(result.details["usage"])
    votes = usage.pop("votes/all", 0)
    tied, empty = usage.pop("votes/tied", 0), usage.pop("votes/empty", 0)
    if votes:
        yield (
            f"{result.name}: of {votes:g} votes, {tied:g} were tied, and the earliest answer won;"
            f" in {empty:g} no attempt had an answer, and the first one was returned"
        )
    for name, number in usage.items():
        if number:
            yield f"{result.name}: {name} {number:g}"
    for role, number in result.details["generated_by_role"].items():
        if role:
            read = result.details["read_by_role"].get(role, 0)
            yield f"{result.name}: the role {role} generated {number:,} tokens and read {read:,}"


def _title(comparison: StrategyComparison) -> str:
    return (
        f"{comparison.num_tasks} tasks, {comparison.attempts_per_task} answers of each strategy"
        " (95 % intervals over tasks); tokens per answer"
    )


def _cells(result: StrategyResult, best: set[str]) -> list[str]:
    seconds = result.details.get("seconds_per_answer")
    solved = result.accuracy
    return [
        result.name,
        f"{_percent(solved.value)} [{100 * solved.low:.1f}, {100 * solved.high:.1f}]",
        f"{result.tokens['generated']:,.1f}",
        f"{result.tokens['read']:,.1f}",
        "" if seconds is None else f"{seconds:.2f}",
        "*" if result.name in best else "",
    ]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _points(difference: Interval) -> str:
    low, high = 100 * difference.low, 100 * difference.high
    return f"{100 * difference.value:+.1f} points [{low:+.1f}, {high:+.1f}]"
