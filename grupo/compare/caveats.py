"""What a comparison cannot say, and why."""

from collections.abc import Callable, Iterator

from grupo.compare.experiment import differing
from grupo.compare.result import Result
from grupo.compare.run_status import FINISHED
from grupo.core.component import show
from grupo.core.statistics import LEVEL, least_p, pairs_needed

CHANCE = 1 - LEVEL
FAR = 1.1  # so many times the baseline's: worth a word


def cautions(result: Result) -> list[str]:
    """What cannot be concluded, and why."""
    return [line for look in LOOKS for line in look(result)]


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


def _paced(result: Result) -> Iterator[str]:
    """Methods whose own plan of updates was not theirs here."""
    one = result.comparison
    off = {name: mine.method.plan for name, mine in one.recipes.items()}
    off = {name: plan for name, plan in off.items() if one.held[name].method.plan != plan}
    if off:
        names = "; ".join(f"{name}, {show(plan)}" for name, plan in off.items())
        yield (
            f"Updates were held equal; these have a plan of their own, with which they may do"
            f" otherwise: {names}. `--updates own` lets each keep it."
        )


def _across(result: Result) -> Iterator[str]:
    """Recipes whose mean over task sets hides that these do not agree."""
    sets = result.comparison.sets
    for one in result.differences:
        by = {name: result.by(one.name, (name,)).value for name in sets}
        above, below = [n for n in sets if by[n] > 0], [n for n in sets if by[n] < 0]
        if above and below:
            where = f"above the baseline on {', '.join(above)} and below it on {', '.join(below)}"
            yield f"{one.name} is {where}; nothing is tested on one task set alone."


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
    _paced,
    _across,
    _seconds,
    _beyond,
)
