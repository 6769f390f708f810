"""The page of the atlas: families, comparisons, curves, and answers before and after training."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from grupo.compare.sequential_design import CONTINUE, GREATER
from grupo.compare.table_formats import markdown
from grupo.evidence.atlas.comparison import (
    DESIGN,
    AtlasComparison,
    Runs,
    whole_and_half,
)
from grupo.evidence.claims.comparisons import Verdict
from grupo.evidence.claims.page_format import method_link
from grupo.util.statistics import Interval

DECIDED = (Verdict.HOLDS, Verdict.DOES_NOT_HOLD)
VERDICTS = (*DECIDED, Verdict.UNDECIDED, Verdict.PENDING)
MAX_ANSWER = 120  # characters of an answer on the page
HEADER = [
    *("arm", "baseline", "question", "metric", "at equal updates", "at equal tokens"),
    *("pairs", "verdict", "toy", "agrees"),
]
CHECK_HEADER = ["family", "runs", "before", "half", "whole", "whole minus half", "passes"]

INTRODUCTION = """\
# An atlas of methods on a pretrained model

SmolLM2-135M-Instruct, whose published weights are rounded to 4 bits, learns three families of
tasks of the [survey](real_survey.md) by full fine-tuning in float32: 8 steps of 4 prompts with 8
answers each, Adam, learning rate 1e-5. An arm is a published method with its own advantage, loss
and mean over tokens, or GRPO with one part replaced; its update plan is that of the baseline,
unless the plan is the question. The baseline has no KL penalty. 32 held-out tasks are answered
three times before, in the middle of and after training.

Every comparison was fixed before its first run: arm, baseline, metric, direction and unit. It is
tested by the exact sign-flip test of paired seeds after {looks} pairs at {alpha:.0%}, and stops
with its verdict. {count} comparisons at {alpha:.0%} each have {expected:.1f} verdicts by chance
alone if no arm differs from its baseline; at least one is expected with a probability of at most
{family_wise:.0%}. A verdict names its family, and is about the beginning of training: 8 steps of 32
answers show what learns faster, not what ends higher.

In each pair both runs are compared where the one with the smaller total ended: at equal updates,
or at equal generated tokens, discarded ones included, by interpolation between evaluations. The
verdict is made in the unit that is set in bold; the other column has a test of its own.

*Toy* is the verdict on the claim of the same method in [claims.md](claims.md), where the policy is
a table of logits. *Agrees* is empty where one of the two is not decided.

`python recipes/real/atlas.py docs --model PATH --minutes 60` trains what is still needed; the runs
are in `atlas.jsonl`.

"""

CHECKS = """\
## What a comparison can show

A method that cheats has to win first: here it is twice the training. The table tests the held-out
accuracy after all updates of plain GRPO against that after half of them, on the same seeds. Where
even this has no verdict, no comparison of methods can have one.

"""


def atlas_page(comparisons: Sequence[AtlasComparison], runs: Runs, toys: Mapping[str, str]) -> str:
    """The page as Markdown.

    Args:
        comparisons: The comparisons, those of a family together.
        runs: The finished runs.
        toys: Verdicts of `docs/claims.md` by method.
    """
    families = list(dict.fromkeys(comparison.family for comparison in comparisons))
    parts = [
        _introduction(len(comparisons)),
        _summary(comparisons, runs),
        CHECKS,
        markdown([CHECK_HEADER, *(_check_row(family, runs) for family in families)]),
        "\n![Held-out accuracy of each arm](images/atlas.svg)\n",
    ]
    for family, group in groupby(comparisons, lambda one: one.family):
        rows = [_row(comparison, runs, toys) for comparison in group]
        parts += [f"\n## {family}\n\n", markdown([HEADER, *rows]), *_answers(family, runs)]
    return "".join(parts)


def difference_text(interval: Interval, scale: float) -> str:
    """A mean difference with its interval, such as "+4.2 [-1.0, +9.1]"; "-" without one."""
    if math.isnan(interval.value):
        return "-"
    value, low, high = (f"{scale * x:+.1f}" for x in (interval.value, interval.low, interval.high))
    return f"{value} [{low}, {high}]"


def agreement(verdict: Verdict, toy: str) -> str:
    """Whether both are decided in the same direction; "" where one is not decided.

    >>> agreement(Verdict.HOLDS, "holds, decided once"), agreement(Verdict.UNDECIDED, "holds")
    ('yes', '')
    """
    if verdict not in DECIDED or not toy.startswith(DECIDED):
        return ""
    return "yes" if toy.startswith(verdict) else "no"


def _introduction(count: int) -> str:
    return INTRODUCTION.format(
        looks=", ".join(map(str, DESIGN.looks[:-1])) + f" or {DESIGN.looks[-1]}",
        alpha=DESIGN.alpha,
        count=count,
        expected=DESIGN.alpha * count,
        family_wise=min(1.0, DESIGN.alpha * count),
    )


def _summary(comparisons: Sequence[AtlasComparison], runs: Runs) -> str:
    lines = []
    for verdict in VERDICTS:
        named = [f"{one.arm} ({one.family})" for one in comparisons if one.verdict(runs) is verdict]
        lines.append(f"* **{verdict}** ({len(named)}): {', '.join(named) or 'none'}\n")
    return "".join(["## Verdicts\n\n", *lines, "\n"])


def _check_row(family: str, runs: Runs) -> list[str]:
    arm = f"{family}/grpo"
    own = [run for (name, _), run in sorted(runs.items()) if name == arm]
    if not own:
        return [family, "0", *["-"] * 5]
    decision = DESIGN.decide(whole_and_half(runs, arm, "sampled"))
    at = [sum(run.points[i].metrics["sampled"] for run in own) / len(own) for i in (0, 1, -1)]
    passes = "-" if decision.verdict == CONTINUE else _yes(decision.verdict == GREATER)
    shown = [f"{value:.1%}" for value in at]
    return [family, str(len(own)), *shown, difference_text(decision.mean_difference, 100), passes]


def _row(comparison: AtlasComparison, runs: Runs, toys: Mapping[str, str]) -> list[str]:
    verdict, toy = comparison.verdict(runs), toys.get(comparison.method, "")
    scale = 1.0 if comparison.metric == "answer_tokens" else 100.0
    cells = []
    for unit in ("updates", "tokens"):
        decision = comparison.decision(runs, unit)
        text = difference_text(decision.mean_difference, scale)
        cells.append(f"**{text}**" if unit == comparison.unit and text != "-" else text)
    predicted = "more" if comparison.direction > 0 else "less"
    return [
        _arm_text(comparison),
        comparison.baseline,
        comparison.question,
        f"{predicted} `{comparison.metric}`",
        *cells,
        str(len(comparison.differences(runs, comparison.unit))),
        str(verdict),
        toy,
        agreement(verdict, toy),
    ]


def _arm_text(comparison: AtlasComparison) -> str:
    if not comparison.method:
        return comparison.arm
    link = method_link(comparison.method)
    return link if comparison.arm == comparison.method else f"{comparison.arm}: {link}"


def _answers(family: str, runs: Runs) -> Iterator[str]:
    """The answers of seed 0 before training, and after it with each arm."""
    own = {arm: run for (arm, seed), run in runs.items() if not seed and run.answers}
    own = {arm: run for arm, run in own.items() if arm.startswith(f"{family}/")}
    if not own:
        return
    rows = [["arm", "prompt", "answer", "reward"]]
    for number, (arm, run) in enumerate(own.items()):
        name = arm.partition("/")[2]
        if not number:
            rows += [["before", *_cells(answer)] for answer in run.answers["before"]]
        rows += [[name, *_cells(answer)] for answer in run.answers["after"]]
    yield "\nAnswers of seed 0 in the first step, and in the last step of each arm:\n\n"
    yield markdown(rows)


def _cells(answer: Sequence[str]) -> list[str]:
    return [" ".join(text.split())[:MAX_ANSWER] for text in answer]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
