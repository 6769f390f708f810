"""The conclusions of a comparison as text, and its Markdown report."""

from collections.abc import Iterator, Sequence

from grupo.compare import table_formats, tables
from grupo.compare.caveats import caveats
from grupo.compare.experiment import METRICS
from grupo.compare.result import IF_NORMAL, INCONCLUSIVE, ComparisonResult, Difference
from grupo.compare.update_budget import describe_all_updates, describe_updates


def conclusions(result: ComparisonResult) -> list[str]:
    """Conclusions from the tested differences, as sentences."""
    differences = result.differences
    if not differences:
        return ["There is one recipe: nothing is compared."]
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
    return [*sentences, *_update_plan_differences(result)]


def caption(result: ComparisonResult) -> str:
    """The size, the budget and the updates of the comparison in one line."""
    updates = describe_all_updates(result.comparison.run_recipes)
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
        f"{caption(result)} `{result.metric}`: {description}.",
        table_formats.markdown(rows).strip(),
        LEGEND,
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
    " the recipe is above a run of the baseline; ties count half. `p`: exact sign-flip test of the"
    " differences. `p (Holm)`: corrected for all rows. `t-test p (Holm)`: Student's paired t-test,"
    " which assumes normal differences."
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
    mean = tables.format_interval(result.metric, difference.mean_difference, "+")
    direction = "more" if difference.mean_difference.value > 0 else "less"
    needs_normality = difference.verdict.endswith(IF_NORMAL)
    p = difference.t_test_p_holm if needs_normality else difference.sign_test_p_holm
    return (
        f"{difference.name} has {direction} `{result.metric}` than"
        f" {result.comparison.baseline_name}: {mean}, corrected p {tables.format_probability(p)}"
    )


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
    return "\n".join(f"* {line}" for line in lines)
