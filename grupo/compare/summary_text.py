"""The conclusions of a comparison as text, and its Markdown report."""

from collections.abc import Iterator, Sequence

from grupo.compare import equal_usage, table_formats, tables
from grupo.compare.caveats import caveats
from grupo.compare.controls import check_controls
from grupo.compare.differences import IF_NORMAL, INCONCLUSIVE, UNFINISHED_TEST, Difference
from grupo.compare.experiment import METRICS
from grupo.compare.metric_text import (
    format_interval,
    format_plain_interval,
    format_probability,
)
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import NOT_NEEDED
from grupo.compare.update_budget import (
    describe_all_updates,
    describe_rule,
    describe_updates,
)


def conclusions(result: ComparisonResult) -> list[str]:
    """Conclusions from the controls and the tested differences, as sentences."""
    differences = result.differences
    if not differences:
        return [*_controls(result), "There is one recipe: nothing is compared."]
    significant = [d for d in differences if d.verdict in ("more", "less")]
    sentences = [f"{_describe_difference(result, d)}." for d in significant]
    normal = [_describe_difference(result, d) for d in differences if d.verdict.endswith(IF_NORMAL)]
    inconclusive = [d.name for d in differences if d.verdict == INCONCLUSIVE]
    if normal:
        sentences.append(
            "If differences between runs are normally distributed, which so few runs cannot show:"
            f" {'; '.join(normal)}."
        )
    if inconclusive:
        sentences.append(
            f"Not significantly different from {result.comparison.baseline_name}:"
            f" {', '.join(inconclusive)}. This does not show that they are equal."
        )
    notes = (*_sequential_test(result), *_update_plan_differences(result))
    return [*_controls(result), *sentences, *notes]


def caption(result: ComparisonResult) -> str:
    """The size, the budget, and the rule and number of updates of the comparison in one line."""
    rule = describe_rule(result.comparison.updates)
    updates = f"updates {rule}: {describe_all_updates(result.comparison.run_recipes)}"
    return f"{_describe_size(result)}; {_describe_budget(result)} each; {updates}."


def report_markdown(result: ComparisonResult, image_files: Sequence[str]) -> str:
    """The whole report as Markdown.

    Args:
        result: the result of the comparison.
        image_files: the names of the figures to embed.
    """
    rows = tables.main_table(result)
    description = METRICS[result.metric]
    parts = [
        "# Comparison",
        f"{table_formats.markdown_text(caption(result))} `{result.metric}`: {description}.",
        table_formats.markdown(rows).strip(),
        LEGEND + (LEGEND_OF_DESIGN if result.comparison.design else LEGEND_OF_TESTS),
        *_equal_usage(result),
        "## Conclusions",
        _bullet_list(conclusions(result)),
        "## Caveats",
        _bullet_list(caveats(result)),
        *["## Figures"] * bool(image_files),
        *(f"![{name}]({name})" for name in image_files),
        "## Runs",
        table_formats.markdown(tables.run_table(result)).strip(),
    ]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "Means over seeds with 95 % bootstrap intervals over seeds. `against`: the mean difference to"
    " the baseline's run of the same seed on the same tasks. `P(above)`: probability that a run of"
    " the recipe is above a run of the baseline; ties count half. `effect size`: the mean"
    " difference in standard deviations of differences (Hedges' g), with an interval that assumes"
    " normal differences. "
)
LEGEND_OF_EQUAL_USAGE = (
    "In each pair both runs are compared where the one with the smaller total ended: held-out"
    " scores are interpolated between evaluations (`--evaluation.every`). Each column has an error"
    " rate of its own. Where a run had not ended, its schedules had not reached their end either."
)
LEGEND_OF_TESTS = (
    "`p`: exact sign-flip test of the differences. `p (Holm)`: corrected for all rows. `t-test p"
    " (Holm)`: Student's paired t-test, which assumes normal differences."
)
LEGEND_OF_DESIGN = (
    "`pairs`: when the verdict was reached. `verdict`: of an exact sequential sign-flip test. The"
    " intervals of `against` and `effect size` are valid although the test may stop early; infinite"
    " bounds: so few pairs cannot exclude any value. The mean of a test that stopped early is on"
    " average too far from 0."
)


def _equal_usage(result: ComparisonResult) -> list[str]:
    """The table at equal usage with its legend; empty if no curve was recorded."""
    rows = equal_usage.equal_usage_table(result)
    return [table_formats.markdown(rows).strip(), LEGEND_OF_EQUAL_USAGE] if rows else []


def _controls(result: ComparisonResult) -> Iterator[str]:
    differences = result.control_differences
    means = {one.name: one.mean_difference for one in differences}
    effects = {n: format_interval(result.metric, mean, "+") for n, mean in means.items()}
    return check_controls(result.comparison.controls, differences, effects)


def _sequential_test(result: ComparisonResult) -> Iterator[str]:
    """The error rate of a sequential test, and the runs that it saved."""
    design = result.comparison.design
    if not design:
        return
    unfinished = [d.name for d in result.differences if d.verdict == UNFINISHED_TEST]
    if unfinished:
        yield f"No verdict yet, because more pairs are needed: {', '.join(unfinished)}."
    saved = sum(run.status == NOT_NEEDED for run in result.run_statuses)
    looks = ", ".join(map(str, design.looks))
    yield (
        f"Recipes were tested sequentially, after {looks} pairs: if no recipe differs from the"
        f" baseline, the probability of any verdict more or less is at most {100 * design.alpha:g}"
        f" %. {saved} of {len(result.run_statuses)} runs were not needed."
    )


def _update_plan_differences(result: ComparisonResult) -> Iterator[str]:
    """Recipes that differ from the baseline in their update plan, not only in the method."""
    recipes = result.comparison.run_recipes
    baseline = result.comparison.baseline_name
    base = recipes[baseline]
    other_plans = [
        f"{name}, {describe_updates(recipe)}"
        for name, recipe in recipes.items()
        if recipe.method.updates != base.method.updates
    ]
    if other_plans:
        yield (
            "The differences of these recipes include the effect of their update plans, because"
            f" {baseline} has {describe_updates(base)}: {'; '.join(other_plans)}."
            " `--updates-per-step shared` separates the two."
        )


def _describe_difference(result: ComparisonResult, difference: Difference) -> str:
    mean = format_interval(result.metric, difference.mean_difference, "+")
    direction = "more" if difference.mean_difference.value > 0 else "less"
    effect = format_plain_interval(difference.effect_size)
    return (
        f"{difference.name} has {direction} `{result.metric}` than"
        f" {result.comparison.baseline_name}: {mean}, effect size {effect}, {_evidence(difference)}"
    )


def _evidence(difference: Difference) -> str:
    """The p value of a difference, or the number of pairs of a sequential test."""
    if difference.looks:
        return f"after {difference.pairs} pairs"
    name = "t_test_p_holm" if difference.verdict.endswith(IF_NORMAL) else "sign_test_p_holm"
    return f"corrected p {format_probability(difference.tests[name])}"


def _describe_size(result: ComparisonResult) -> str:
    comparison = result.comparison
    counts = {
        "recipe": len(comparison.recipes),
        "seed": len(comparison.seed_values),
        "task set": len(comparison.task_set_names),
    }
    return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())


def _describe_budget(result: ComparisonResult) -> str:
    budget = result.comparison.budget
    return f"{budget.count:,.10g} {budget.unit}"


def _bullet_list(lines: Sequence[str]) -> str:
    return "\n".join(f"* {table_formats.markdown_text(line)}" for line in lines)
