"""Rubrics of what an answer lacks by the consensus of several other answers.

RubiCap (arXiv:2603.09160) writes such a rubric for each picture before training. The items are
those of `RubricColumn`.
"""

from collections import Counter
from collections.abc import Callable, Sequence

MISSING = "The answer states: {fact}"
WRONG = "The answer does not state: {fact}"
CRITICAL, IMPORTANT, MINOR = 3.0, 2.0, 1.0  # severities of RubiCap


def consensus(committee: Sequence[Sequence[str]], quorum: int = 2) -> list[str]:
    """The facts that at least `quorum` members state, in the order of their first mention.

    >>> consensus([["a cat", "a hat"], ["a hat", "rain"], ["a hat"]])
    ['a hat']
    """
    counts = Counter(fact for facts in committee for fact in dict.fromkeys(facts))
    return [fact for fact, count in counts.items() if count >= quorum]


def deficit_rubric(
    stated: Sequence[str],
    committee: Sequence[Sequence[str]],
    *,
    severity: Callable[[str, int], float],
    wrong_severity: float = CRITICAL,
    quorum: int = 2,
) -> list[dict[str, object]]:
    """An item for each fact of the consensus that an answer lacks, and for each wrong one.

    A fact is wrong if no member states it. An answer without deficits has an empty rubric; its task
    is left out.

    Args:
        stated: The facts that the answer states.
        committee: The facts that each member states.
        severity: Weight of a missing fact, from the fact and its place in the consensus.
        wrong_severity: Weight of a wrong fact.
        quorum: Members that make a consensus.

    >>> committee = [["a cat", "a hat"], ["a cat", "a hat"], ["a cat", "rain"]]
    >>> for item in deficit_rubric(["a cat", "a dog"], committee, severity=lambda fact, i: 3.0 - i):
    ...     print(item["weight"], item["criterion"])
    2.0 The answer states: a hat
    3.0 The answer does not state: a dog
    """
    known = {fact for facts in committee for fact in facts}
    items = [
        _item(MISSING, fact, severity(fact, place))
        for place, fact in enumerate(consensus(committee, quorum))
        if fact not in stated
    ]
    wrong = [fact for fact in dict.fromkeys(stated) if fact not in known]
    return [*items, *(_item(WRONG, fact, wrong_severity) for fact in wrong)]


def _item(template: str, fact: str, weight: float) -> dict[str, object]:
    return {"name": fact, "criterion": template.format(fact=fact), "weight": weight}
