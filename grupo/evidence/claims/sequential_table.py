"""A Markdown table of sequential tests of arms against one of them."""

from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.table_formats import markdown
from grupo.evidence.claims.paired_table import Runs, signed


def sequential_table(runs: Runs, metric: str, baseline: str, design: SequentialDesign) -> str:
    """The verdict on each arm, the pairs that it took, and the difference at that point.

    The design's error rate is that of all arms together.

    Args:
        runs: Metrics of each arm by seed, in the planned order of the seeds.
        metric: The metric to test.
        baseline: The arm that others are compared with.
        design: Looks and error rate.

    >>> values = {"a": range(8), "b": [x + 1.0 + x / 10 for x in range(8)]}
    >>> runs = {arm: [{"x": float(x)} for x in xs] for arm, xs in values.items()}
    >>> print(sequential_table(runs, "x", "a", SequentialDesign(8, (8,))))
    | arm | `x` minus a | verdict | pairs |
    | --- | --- | --- | --- |
    | b | +1.35 [+1.13, +1.57] | greater | 8 |
    """
    design = design.shared_by(len(runs) - 1)
    rows = []
    for arm in runs:
        if arm == baseline:
            continue
        pairs = zip(runs[arm], runs[baseline], strict=True)
        decision = design.decide([a[metric] - b[metric] for a, b in pairs])
        difference = signed(decision.mean_difference)
        rows.append([arm, difference, decision.verdict, str(decision.pairs)])
    return markdown([["arm", f"`{metric}` minus {baseline}", "verdict", "pairs"], *rows]).rstrip()
