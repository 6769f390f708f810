"""Caveats of a comparison: conclusions that its data do not support."""

from collections.abc import Callable, Iterator

from grupo.compare.experiment import differing_fields
from grupo.compare.inert_methods import inert_method_caveats
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import CRASHED, FINISHED, NOT_NEEDED
from grupo.core.component import to_code
from grupo.util.statistics import CONFIDENCE_LEVEL, pairs_needed, smallest_corrected_p

ALPHA = 1 - CONFIDENCE_LEVEL
# by the largest number of seeds: how many of 100 percentile bootstrap intervals of 95 % miss the
# true mean, for normally distributed values
BOOTSTRAP_MISSES = {2: 49, 3: 25, 4: 21, 5: 16, 6: 13, 8: 12, 12: 9, 24: 7}
MAX_USAGE_RATIO = 1.1  # larger differences in usage are reported


def caveats(result: ComparisonResult) -> list[str]:
    """The caveats of a result, as sentences."""
    return [line for check in CAVEAT_CHECKS for line in check(result)]


def _single_seed(result: ComparisonResult) -> Iterator[str]:
    if len(result.comparison.seed_values) == 1:
        yield (
            "There is one seed: the variance between seeds is unknown, and no difference can be"
            " concluded."
        )


def _too_few_pairs(result: ComparisonResult) -> Iterator[str]:
    count = len(result.differences)
    pairs = max((difference.pairs for difference in result.differences), default=0)
    smallest_p = smallest_corrected_p(pairs, count)
    if count and pairs > 1 and smallest_p > ALPHA and not result.comparison.design:
        yield (
            f"{pairs} pairs cannot be significant in the sign test: the smallest possible p is"
            f" {2.0 ** (1 - pairs):.3g}, and {smallest_p:.3g} corrected for {count}"
            f" comparison{'s' * (count > 1)}. {pairs_needed(count)} pairs are needed."
        )


def _short_intervals(result: ComparisonResult) -> Iterator[str]:
    """Bootstrap intervals over few seeds, which are too short."""
    finished_runs = max((row.finished for row in result.rows if not row.task_set), default=0)
    seeds = finished_runs // len(result.comparison.task_set_names)
    misses = next((x for count, x in BOOTSTRAP_MISSES.items() if seeds <= count), 0)
    if misses and seeds > 1:
        yield (
            f"With {seeds} seeds the bootstrap interval of a mean misses it about {misses} times in"
            " 100, not 5, even if runs are normally distributed."
        )


def _asymmetric_differences(result: ComparisonResult) -> Iterator[str]:
    if result.differences:
        yield (
            "The sign-flip tests show that recipes differ, and are exact if they do not. If one has"
            " a lower chance of rare failures and is otherwise worse, the means need more seeds."
        )


def _unfinished_runs(result: ComparisonResult) -> Iterator[str]:
    for run in result.run_statuses:
        if run.status not in (FINISHED, NOT_NEEDED):
            reason = f": {run.reason}" * bool(run.reason)
            yield f"{run.run_spec} is not in any mean: {run.status}{reason}."
        for metric in run.nonfinite_metrics:
            yield f"{run.run_spec} has {metric} = NaN, which is left out of means and differences."
    if any(run.status == CRASHED for run in result.run_statuses):
        yield "A recipe whose bad runs crash looks better than it is."


def _unequal_usage(result: ComparisonResult) -> Iterator[str]:
    """Steps, tokens and seconds that differ much between recipes, although the budget is equal."""
    recipes = result.comparison.recipes
    rows = {row.name: row for row in result.rows if not row.task_set and row.name in recipes}
    baseline = rows[result.comparison.baseline_name]
    unit = result.comparison.budget.unit
    for metric in ("steps", "tokens", "seconds"):
        base = baseline.means[metric].value
        if metric == unit or not base > 0:
            continue
        usage = {name: row.means[metric].value for name, row in rows.items()}
        ratios = [f"{name} {x / base:.2g}" for name, x in usage.items() if _differs_much(x, base)]
        if ratios:
            yield (
                f"The runs are equal in {unit}, not in {metric}; ratios to {baseline.name}:"
                f" {', '.join(ratios)}."
            )


def _differs_much(x: float, y: float) -> bool:
    return x > MAX_USAGE_RATIO * y or y > MAX_USAGE_RATIO * x


def _off_budget(result: ComparisonResult) -> Iterator[str]:
    """Runs that used much less or much more than the budget."""
    budget = result.comparison.budget
    controls = result.comparison.control_names
    for run in result.run_statuses:
        if run.status != FINISHED or run.run_spec.name in controls:
            continue
        used = run.usage(budget.unit) / budget.count
        if not 1 / MAX_USAGE_RATIO <= used <= MAX_USAGE_RATIO:
            yield f"{run.run_spec} used {100 * used:.0f} % of the budget."


def _other_fields_differ(result: ComparisonResult) -> Iterator[str]:
    for name, fields in differing_fields(result.comparison).items():
        baseline = result.comparison.baseline_name
        yield f"{name} differs from {baseline} in more than the method: {', '.join(fields)}."


def _replaced_update_plans(result: ComparisonResult) -> Iterator[str]:
    """Methods that were trained with another update plan than their own."""
    run_recipes = result.comparison.run_recipes
    own_plans = {name: x.method.updates for name, x in result.comparison.recipes.items()}
    replaced = [
        name for name, plan in own_plans.items() if run_recipes[name].method.updates != plan
    ]
    if replaced:
        plans = "; ".join(f"{name}, {to_code(own_plans[name])}" for name in replaced)
        yield (
            "Update plans were held equal; these methods have their own plan, with which their"
            f" results may differ: {plans}. `--updates-per-step per-method` keeps it."
        )


def _inert_methods(result: ComparisonResult) -> Iterator[str]:
    return inert_method_caveats(result.comparison.run_recipes)


def _task_sets_disagree(result: ComparisonResult) -> Iterator[str]:
    """Recipes that are above the baseline on one task set and below it on another."""
    sets = result.comparison.task_set_names
    for name in (difference.name for difference in result.differences):
        means = {task_set: result.mean_difference(name, (task_set,)).value for task_set in sets}
        above = [task_set for task_set in sets if means[task_set] > 0]
        below = [task_set for task_set in sets if means[task_set] < 0]
        if above and below:
            yield (
                f"{name} is above the baseline on {', '.join(above)} and below it on"
                f" {', '.join(below)}; single task sets are not tested."
            )


def _shared_machine(result: ComparisonResult) -> Iterator[str]:
    yield "Seconds were measured while runs shared this machine; they differ on other machines."


def _general_limits(result: ComparisonResult) -> Iterator[str]:
    yield (
        "Intervals are over seeds only: all recipes had the same model and budget, and the same"
        " tasks per seed; results may not transfer. No recipe was tuned for the comparison."
    )
    if len(result.differences) > 1:
        yield (
            "The order of the table is not a ranking: recipes with inconclusive differences may be"
            " in the opposite order."
        )


CaveatCheck = Callable[[ComparisonResult], Iterator[str]]
CAVEAT_CHECKS: tuple[CaveatCheck, ...] = (
    _single_seed,
    _too_few_pairs,
    _short_intervals,
    _unfinished_runs,
    _off_budget,
    _unequal_usage,
    _other_fields_differ,
    _replaced_update_plans,
    _inert_methods,
    _task_sets_disagree,
    _shared_machine,
    _asymmetric_differences,
    _general_limits,
)
