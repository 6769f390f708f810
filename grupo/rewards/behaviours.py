"""Counts of reasoning behaviours in the text of an answer, to be measured and not to be paid."""

import re
from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward

PHRASES: Mapping[str, str] = {
    "verification": r"let me check|verify|double-check|check (?:that|whether|this|the)",
    "backtracking": r"wait\b|let me try (?:another|again)|that is wrong|instead, ?let",
    "subgoals": r"first,|next,|step \d|then we|finally,",
    "backward_chaining": r"work(?:ing)? backwards?|starting from the (?:answer|goal|result)",
    "planning": r"<plan>|(?<![</])\bplan\b|strategy|outline",
    "code": r"<code>|```|\bdef |\bprint\(|\breturn ",
    "recall": r"<knowledge>|recall|by definition|theorem|formula",
    "examples": r"<examples>|for example|for instance|e\.g\.",
}
"""A regular expression of each behaviour, which ignores case."""
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PHRASES.items()}
MAX_CHARS = 100_000


@component
class BehaviourCounts(PerRolloutReward):
    """How many phrases of reasoning behaviours the text has, of each kind and together.

    A reward term of weight 0 measures them as `reward/NAME/verification` and so on. Phrases are a
    rough measure, for comparisons within one task: prior prompt engineering (arXiv:2505.14157).

    >>> from grupo.core.types import Response
    >>> text = "<plan>First, add.</plan> Wait, let me check."
    >>> rollout = Rollout((("?", Response((), (), text=text)),))
    >>> counts = BehaviourCounts().score(Task("k", "?"), rollout)
    >>> {name: count for name, count in counts.items() if count}
    {'score': 4, 'verification': 1, 'backtracking': 1, 'subgoals': 1, 'planning': 1}
    """

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        text = rollout.text[:MAX_CHARS]
        counts = {name: len(pattern.findall(text)) for name, pattern in _COMPILED.items()}
        return {"score": sum(counts.values()), **counts}
