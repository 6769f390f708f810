"""What a comparison says in words: what can be concluded, and what cannot."""

from collections.abc import Iterator, Sequence

from grupo.compare import table_formats, tables
from grupo.compare.caveats import caveats
from grupo.compare.experiment import METRICS
from grupo.compare.result import IF_NORMAL, INCONCLUSIVE, ComparisonResult, Difference
from grupo.compare.update_budget import describe_all_updates, describe_updates


def conclusions(result: ComparisonResult) -> list[str]:
    """What the differences say."""
    against, many = result.comparison.baseline_name, result.differences
    if not many:
        return ["There is one recipe: nothing is compared."]
    said = [
        f"{_describe_difference(result, one)}." for one in many if one.verdict in ("more", "less")
    ]
    normal = [_describe_difference(result, one) for one in many if one.verdict.endswith(IF_NORMAL)]
    open_ = [one.name for one in many if one.verdict == INCONCLUSIVE]
    if normal:
        supposed = "If differences between runs are normally distributed, which so few cannot show"
        said.append(f"{supposed}: {'; '.join(normal)}.")
    if open_:
        names = ", ".join(open_)
        said.append(f"Not told apart from {against}: {names}. That is not to say they are equal.")
    return [*said, *_update_plan_differences(result)]


def caption(result: ComparisonResult) -> str:
    """What was compared, and what was held equal."""
    return f"{_describe_size(result)}; {_describe_budget(result)} each; {describe_all_updates(result.comparison.run_recipes)}."


def report_markdown(result: ComparisonResult, image_files: Sequence[str]) -> str:
    """All of it, as a page."""
    rows, about = tables.main_table(result), METRICS[result.metric]
    parts = [
        "# Comparison",
        f"{caption(result)} `{result.metric}`: {about}.",
        table_formats.markdown(rows).strip(),
        LEGEND,
        "## What can be concluded",
        _bullet_list(conclusions(result)),
        "## What cannot",
        _bullet_list(caveats(result)),
        *["## Pictures"] * bool(image_files),
        *(f"![{name}]({name})" for name in image_files),
        "## Runs",
        table_formats.markdown(tables.run_table(result)).strip(),
    ]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "Means over seeds with 95 % bootstrap intervals over seeds. `against`: the mean difference to"
    " the baseline's run of the same seed on the same tasks. `P(above)`: chance that one of its"
    " runs is above one of the baseline's, a draw half. `p`: by the signs of the differences,"
    " exact; `of many`: corrected for all rows by Holm's method; `normal`: by Student's t, which"
    " supposes that differences are normal."
)


def _update_plan_differences(result: ComparisonResult) -> Iterator[str]:
    """Whose difference is not that of the method alone."""
    held, against = result.comparison.run_recipes, result.comparison.baseline_name
    base = held[against].method.updates
    off = [
        f"{name}, {describe_updates(one)}"
        for name, one in held.items()
        if one.method.updates != base
    ]
    if off:
        yield (
            f"A difference of these is that of the method and of its updates together, for"
            f" {against} has {describe_updates(held[against])}: {'; '.join(off)}. `--updates-per-step shared` takes them"
            " apart."
        )


def _describe_difference(result: ComparisonResult, one: Difference) -> str:
    by = tables.format_interval(result.metric, one.mean_difference, "+")
    way = "more" if one.mean_difference.value > 0 else "less"
    p = one.t_test_p_holm if one.verdict.endswith(IF_NORMAL) else one.sign_test_p_holm
    found = f"{one.name} has {way} `{result.metric}` than {result.comparison.baseline_name}: {by}"
    return f"{found}, p {tables.format_probability(p)} after correction"


def _describe_size(result: ComparisonResult) -> str:
    one = result.comparison
    counts = {"recipe": one.recipes, "seed": one.seed_values, "task set": one.task_set_names}
    return ", ".join(f"{len(of)} {what}{'s' * (len(of) != 1)}" for what, of in counts.items())


def _describe_budget(result: ComparisonResult) -> str:
    budget = result.comparison.budget
    return f"{budget.count:,.10g} {budget.unit}"


def _bullet_list(lines: Sequence[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)
