"""What a comparison says in words: what can be concluded, and what cannot."""

from collections.abc import Iterator, Sequence

from grupo.compare import table_formats, tables
from grupo.compare.caveats import cautions
from grupo.compare.experiment import METRICS
from grupo.compare.result import NORMAL, NOTHING, Difference, Result
from grupo.compare.update_budget import pace, paces


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
    return [*said, *_paced(result)]


def caption(result: Result) -> str:
    """What was compared, and what was held equal."""
    return f"{_size(result)}; {_budget(result)} each; {paces(result.comparison.held)}."


def report(result: Result, pictures: Sequence[str]) -> str:
    """All of it, as a page."""
    rows, about = tables.main(result), METRICS[result.metric]
    parts = [
        "# Comparison",
        f"{caption(result)} `{result.metric}`: {about}.",
        table_formats.markdown(rows).strip(),
        LEGEND,
        "## What can be concluded",
        _list(concluded(result)),
        "## What cannot",
        _list(cautions(result)),
        *["## Pictures"] * bool(pictures),
        *(f"![{name}]({name})" for name in pictures),
        "## Runs",
        table_formats.markdown(tables.cells(result)).strip(),
    ]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "Means over seeds with 95 % bootstrap intervals over seeds. `against`: the mean difference to"
    " the baseline's run of the same seed on the same tasks. `P(above)`: chance that one of its"
    " runs is above one of the baseline's, a draw half. `p`: by the signs of the differences,"
    " exact; `of many`: corrected for all rows by Holm's method; `normal`: by Student's t, which"
    " supposes that differences are normal."
)


def _paced(result: Result) -> Iterator[str]:
    """Whose difference is not that of the method alone."""
    held, against = result.comparison.held, result.comparison.against
    base = held[against].method.plan
    off = [f"{name}, {pace(one)}" for name, one in held.items() if one.method.plan != base]
    if off:
        yield (
            f"A difference of these is that of the method and of its updates together, for"
            f" {against} has {pace(held[against])}: {'; '.join(off)}. `--updates equal` takes them"
            " apart."
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
