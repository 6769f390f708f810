"""What a comparison says in words: what can be concluded, and what cannot."""

from collections.abc import Callable, Iterator, Sequence

from grupo.comparing import tables
from grupo.comparing.comparison import METRICS, differing
from grupo.comparing.outcome import FINISHED
from grupo.comparing.result import NORMAL, NOTHING, Difference, Result
from grupo.comparing.statistics import LEVEL, least_p, pairs_needed

CHANCE = 1 - LEVEL
FAR = 1.1  # so many times the baseline's: worth a word


def concluded(result: Result) -> list[str]:
    """What the differences say."""
    against, many = result.comparison.against, result.differences
    if not many:
        return ["There is one recipe: nothing is compared."]
    said = [f"{_found(result, one)}." for one in many if one.verdict in ("more", "less")]
    normal = [_found(result, one) for one in many if one.verdict.endswith(NORMAL)]
    open_ = [one.name for one in many if one.verdict == NOTHING]
    if normal:
        supposed = "If differences between runs are normally distributed, which so few cannot show"
        said.append(f"{supposed}: {'; '.join(normal)}.")
    if open_:
        names = ", ".join(open_)
        said.append(f"Not told apart from {against}: {names}. That is not to say they are equal.")
    return said


def cautions(result: Result) -> list[str]:
    """What cannot be concluded, and why."""
    return [line for look in LOOKS for line in look(result)]


def report(result: Result, pictures: Sequence[str]) -> str:
    """All of it, as a page."""
    rows, about = tables.main(result), METRICS[result.metric]
    parts = [
        "# Comparison",
        f"{_size(result)}; {_budget(result)} each. `{result.metric}`: {about}.",
        tables.markdown(rows).strip(),
        LEGEND,
        "## What can be concluded",
        _list(concluded(result)),
        "## What cannot",
        _list(cautions(result)),
        *["## Pictures"] * bool(pictures),
        *(f"![{name}]({name})" for name in pictures),
        "## Runs",
        tables.markdown(tables.cells(result)).strip(),
    ]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "Means over seeds with 95 % bootstrap intervals over seeds. `against`: the mean difference to"
    " the baseline's run of the same seed on the same tasks. `P(above)`: chance that one of its"
    " runs is above one of the baseline's, a draw half. `p`: by the signs of the differences,"
    " exact; `of many`: corrected for all rows by Holm's method; `normal`: by Student's t, which"
    " supposes that differences are normal."
)


def _no_seeds(result: Result) -> Iterator[str]:
    if len(result.comparison.numbers) == 1:
        yield (
            "There is one seed: nothing is known of how much a run differs from itself, and no"
            " difference can be concluded."
        )


def _too_few(result: Result) -> Iterator[str]:
    many = result.differences
    pairs = max((one.pairs for one in many), default=0)
    least = least_p(pairs, len(many))
    if many and pairs > 1 and least > CHANCE:
        yield (
            f"{pairs} pairs cannot show any difference by their signs alone: the smallest p they"
            f" can have is {2.0 ** (1 - pairs):.3g}, and {least:.3g} corrected for {len(many)}"
            f" comparison{'s' * (len(many) > 1)}. It takes {pairs_needed(len(many))} pairs."
        )


def _narrow(result: Result) -> Iterator[str]:
    if len(result.comparison.numbers) == 3:
        yield (
            "Of three seeds the bootstrap interval is the range from the lowest to the highest."
            " Such a range misses the mean about once in four times, not once in twenty."
        )


def _lost(result: Result) -> Iterator[str]:
    for outcome in result.outcomes:
        if outcome.status != FINISHED:
            why = f": {outcome.why}" * bool(outcome.why)
            yield f"{outcome.cell} is not in any mean: {outcome.status}{why}."
        for metric in outcome.strange:
            yield f"{outcome.cell} has {metric} = NaN, which is in no mean and no difference."
    if any(outcome.status == "crashed" for outcome in result.outcomes):
        yield "A recipe whose bad runs crash looks better than it is."


def _unequal(result: Result) -> Iterator[str]:
    """What the budget does not hold equal, where it differs by much."""
    lines = {line.name: line for line in result.lines if not line.task_set}
    base = lines[result.comparison.against]
    for metric in ("steps", "tokens", "seconds"):
        mine = {name: line.means[metric].value for name, line in lines.items()}
        theirs = base.means[metric].value
        if metric == result.comparison.budget.unit or not theirs > 0:
            continue
        more = [f"{name} {x / theirs:.2g}" for name, x in mine.items() if _off(x, theirs)]
        if more:
            held = result.comparison.budget.unit
            yield f"Equal in {held}, not in {metric}; times {base.name}'s: {', '.join(more)}."


def _off(x: float, y: float) -> bool:
    return x > FAR * y or y > FAR * x


def _missed(result: Result) -> Iterator[str]:
    """Runs that ended well before the budget or after it."""
    budget = result.comparison.budget
    ended = [o for o in result.outcomes if o.status == FINISHED]
    for outcome in ended:
        used = outcome[budget.unit] / budget.count
        if not 1 / FAR <= used <= FAR:
            yield f"{outcome.cell} used {100 * used:.0f} % of the budget."


def _otherwise(result: Result) -> Iterator[str]:
    for name, fields in differing(result.comparison).items():
        said = f"{name} differs from {result.comparison.against} in more than the method"
        yield f"{said}: {', '.join(fields)}."


def _seconds(result: Result) -> Iterator[str]:
    yield (
        "Seconds are those of this machine while cells shared it; they say little of another one."
    )


def _beyond(result: Result) -> Iterator[str]:
    yield (
        "Intervals are over seeds alone: the model, the budget and the tasks of a seed were the"
        " same for all, and nothing is said of others. No recipe was tuned for the comparison."
    )
    if len(result.differences) > 1:
        yield (
            "The order of the table is no ranking: recipes whose differences were not told apart"
            " may well be the other way round."
        )


Look = Callable[[Result], Iterator[str]]
LOOKS: tuple[Look, ...] = (
    _no_seeds,
    _too_few,
    _narrow,
    _lost,
    _missed,
    _unequal,
    _otherwise,
    _seconds,
    _beyond,
)


def _found(result: Result, one: Difference) -> str:
    by = tables.interval(result.metric, one.by, "+")
    way = "more" if one.by.value > 0 else "less"
    p = one.student_of_many if one.verdict.endswith(NORMAL) else one.signs_of_many
    found = f"{one.name} has {way} `{result.metric}` than {result.comparison.against}: {by}"
    return f"{found}, p {tables.probability(p)} after correction"


def _size(result: Result) -> str:
    one = result.comparison
    counts = {"recipe": one.recipes, "seed": one.numbers, "task set": one.sets}
    return ", ".join(f"{len(of)} {what}{'s' * (len(of) != 1)}" for what, of in counts.items())


def _budget(result: Result) -> str:
    budget = result.comparison.budget
    return f"{budget.count:,.10g} {budget.unit}"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)
