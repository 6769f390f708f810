"""What a comparison cannot say, and why."""

from collections.abc import Callable, Iterator

from grupo.compare.experiment import differing_fields
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import FINISHED
from grupo.core.component import to_code
from grupo.core.statistics import CONFIDENCE_LEVEL, pairs_needed, smallest_corrected_p

ALPHA = 1 - CONFIDENCE_LEVEL
MAX_USAGE_RATIO = 1.1  # so many times the baseline's: worth a word


def caveats(result: ComparisonResult) -> list[str]:
    """What cannot be concluded, and why."""
    return [line for look in CAVEAT_CHECKS for line in look(result)]


def _single_seed(result: ComparisonResult) -> Iterator[str]:
    if len(result.comparison.seed_values) == 1:
        yield (
            "There is one seed: nothing is known of how much a run differs from itself, and no"
            " difference can be concluded."
        )


def _too_few_pairs(result: ComparisonResult) -> Iterator[str]:
    many = result.differences
    pairs = max((one.pairs for one in many), default=0)
    least = smallest_corrected_p(pairs, len(many))
    if many and pairs > 1 and least > ALPHA:
        yield (
            f"{pairs} pairs cannot show any difference by their signs alone: the smallest p they"
            f" can have is {2.0 ** (1 - pairs):.3g}, and {least:.3g} corrected for {len(many)}"
            f" comparison{'s' * (len(many) > 1)}. It takes {pairs_needed(len(many))} pairs."
        )


def _three_seeds(result: ComparisonResult) -> Iterator[str]:
    if len(result.comparison.seed_values) == 3:
        yield (
            "Of three seeds the bootstrap interval is the range from the lowest to the highest."
            " Such a range misses the mean about once in four times, not once in twenty."
        )


def _unfinished_runs(result: ComparisonResult) -> Iterator[str]:
    for outcome in result.run_statuses:
        if outcome.status != FINISHED:
            why = f": {outcome.reason}" * bool(outcome.reason)
            yield f"{outcome.run_spec} is not in any mean: {outcome.status}{why}."
        for metric in outcome.nonfinite_metrics:
            yield f"{outcome.run_spec} has {metric} = NaN, which is in no mean and no difference."
    if any(outcome.status == "crashed" for outcome in result.run_statuses):
        yield "A recipe whose bad runs crash looks better than it is."


def _unequal_usage(result: ComparisonResult) -> Iterator[str]:
    """What the budget does not hold equal, where it differs by much."""
    lines = {line.name: line for line in result.rows if not line.task_set}
    base = lines[result.comparison.baseline_name]
    for metric in ("steps", "tokens", "seconds"):
        mine = {name: line.means[metric].value for name, line in lines.items()}
        theirs = base.means[metric].value
        if metric == result.comparison.budget.unit or not theirs > 0:
            continue
        more = [f"{name} {x / theirs:.2g}" for name, x in mine.items() if _differs_much(x, theirs)]
        if more:
            held = result.comparison.budget.unit
            yield f"Equal in {held}, not in {metric}; times {base.name}'s: {', '.join(more)}."


def _differs_much(x: float, y: float) -> bool:
    return x > MAX_USAGE_RATIO * y or y > MAX_USAGE_RATIO * x


def _off_budget(result: ComparisonResult) -> Iterator[str]:
    """Runs that ended well before the budget or after it."""
    budget = result.comparison.budget
    ended = [o for o in result.run_statuses if o.status == FINISHED]
    for outcome in ended:
        used = outcome[budget.unit] / budget.count
        if not 1 / MAX_USAGE_RATIO <= used <= MAX_USAGE_RATIO:
            yield f"{outcome.run_spec} used {100 * used:.0f} % of the budget."


def _other_fields_differ(result: ComparisonResult) -> Iterator[str]:
    for name, fields in differing_fields(result.comparison).items():
        said = f"{name} differs from {result.comparison.baseline_name} in more than the method"
        yield f"{said}: {', '.join(fields)}."


def _replaced_update_plans(result: ComparisonResult) -> Iterator[str]:
    """Methods whose own plan of updates was not theirs here."""
    one = result.comparison
    off = {name: mine.method.updates for name, mine in one.recipes.items()}
    off = {name: plan for name, plan in off.items() if one.run_recipes[name].method.updates != plan}
    if off:
        names = "; ".join(f"{name}, {to_code(plan)}" for name, plan in off.items())
        yield (
            f"Updates were held equal; these have a plan of their own, with which they may do"
            f" otherwise: {names}. `--updates-per-step per-method` lets each keep it."
        )


def _task_sets_disagree(result: ComparisonResult) -> Iterator[str]:
    """Recipes whose mean over task sets hides that these do not agree."""
    sets = result.comparison.task_set_names
    for one in result.differences:
        by = {name: result.mean_difference(one.name, (name,)).value for name in sets}
        above, below = [n for n in sets if by[n] > 0], [n for n in sets if by[n] < 0]
        if above and below:
            where = f"above the baseline on {', '.join(above)} and below it on {', '.join(below)}"
            yield f"{one.name} is {where}; nothing is tested on one task set alone."


def _shared_machine(result: ComparisonResult) -> Iterator[str]:
    yield (
        "Seconds are those of this machine while cells shared it; they say little of another one."
    )


def _general_limits(result: ComparisonResult) -> Iterator[str]:
    yield (
        "Intervals are over seeds alone: the model, the budget and the tasks of a seed were the"
        " same for all, and nothing is said of others. No recipe was tuned for the comparison."
    )
    if len(result.differences) > 1:
        yield (
            "The order of the table is no ranking: recipes whose differences were not told apart"
            " may well be the other way round."
        )


CaveatCheck = Callable[[ComparisonResult], Iterator[str]]
CAVEAT_CHECKS: tuple[CaveatCheck, ...] = (
    _single_seed,
    _too_few_pairs,
    _three_seeds,
    _unfinished_runs,
    _off_budget,
    _unequal_usage,
    _other_fields_differ,
    _replaced_update_plans,
    _task_sets_disagree,
    _shared_machine,
    _general_limits,
)
