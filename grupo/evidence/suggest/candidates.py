"""Three candidate methods for the answers to the five questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from grupo.catalogue.entries import Entry, methods
from grupo.core.paper import TAGS
from grupo.evidence.suggest.evidence import DOES_NOT_HOLD, HOLDS, Evidence, find_evidence
from grupo.evidence.suggest.questions import Answers
from grupo.evidence.suggest.rules import RULES, Rule
from grupo.evidence.suggest.runnable import can_run, example_method, find_method_entry

NUM_CANDIDATES = 3
# points of a method that a rule names first, by the question; the problem matters most
POINTS = {"policy": 0.5, "reward": 2.0, "extra": 4.0, "problem": 4.0, "sampler": 2.0}
POSITION_DISCOUNT = 0.9  # for each method before it in the rule
TAG_SHARE = 0.3  # of these points, for a method that only has a tag of the rule
# points for the test of a method's central claim, which is about language models
VERDICT_POINTS = dict.fromkeys(HOLDS, 0.5) | dict.fromkeys(DOES_NOT_HOLD, -1.0)
CLAIM_POLICIES = ("language", "agents")
# candidates where no rule names three methods that can run: the usual start for a kind of policy
STARTS = {
    "language": ("grpo", "dr_grpo", "rloo", "dapo"),
    "agents": ("grpo", "mt_grpo", "rloo", "dr_grpo"),
    "diffusion-text": ("coupled_grpo", "justgrpo", "grpo"),
    "images": ("flow_grpo", "grpo_guard", "pref_grpo", "tempflow_grpo"),
}
START_REASON = "a usual start; no rule names it for these answers"


@dataclass(frozen=True)
class Reason:
    """Why a method is a candidate.

    Args:
        question: The question whose answer speaks for it.
        answer: The answer; "" if no rule names the method.
        text: What the method changes about it.
    """

    question: str
    answer: str
    text: str


@dataclass(frozen=True)
class Candidate:
    """A suggested method.

    Args:
        key: Name of the method.
        reasons: The rules that name it.
        points: Points by which candidates are ranked.
    """

    key: str
    reasons: tuple[Reason, ...]
    points: float

    @property
    def entry(self) -> Entry:
        """Its entry in the catalogue."""
        return find_method_entry(self.key)

    @property
    def evidence(self) -> Evidence:
        """The project's measurements of it."""
        return find_evidence(self.key)

    @property
    def needs(self) -> tuple[str, ...]:
        """Inputs that a recipe has to provide, in words."""
        method = example_method(self.key)
        requires = method.requires
        terms = sorted(requires.reward_terms - method.provides.reward_terms)
        models = sorted({name.partition("@")[2] for name in requires.all_signals if "@" in name})
        low, high = requires.reward_range or (None, None)
        texts = (
            ("reward terms " + ", ".join(f"`{name}`" for name in terms)) if terms else "",
            ("columns " + ", ".join(f"`{name}`" for name in sorted(requires.columns)))
            if requires.columns
            else "",
            "a teacher in `aux_models`" if "teacher" in models else "",
            "a reference policy in memory" if "ref" in models else "",
            f"rewards from {low:g} to {high:g}" if requires.reward_range else "",
        )
        return tuple(text for text in texts if text)

    def to_data(self) -> dict[str, Any]:
        """The candidate as JSON can hold it."""
        atlas = [vars(one) for one in self.evidence.atlas]
        claim, smoke, bias = (
            None if part is None else vars(part)
            for part in (self.evidence.claim, self.evidence.smoke, self.evidence.bias)
        )
        source = self.entry.source
        return {
            "method": self.key,
            "example": self.entry.example,
            "points": round(self.points, 2),
            "reasons": [vars(reason) for reason in self.reasons],
            "use": self.entry.use,
            "needs": list(self.needs),
            "evidence": {"atlas": atlas, "claim": claim, "smoke": smoke, "bias": bias},
            "source": vars(source) if source else None,
            "missing": list(self.entry.missing),
        }


def suggest_methods(answers: Answers) -> tuple[Candidate, ...]:
    """Three different methods that can run for these answers, the best first."""
    rules = [rule for rule in RULES if _applies(rule, answers)]
    totals = _total_points(rules, answers.policy)
    ranked = sorted(totals, key=lambda key: (-totals[key], key))
    runnable = (key for key in ranked if can_run(key, answers))
    chosen = list(islice(runnable, NUM_CANDIDATES))
    starts = (key for key in STARTS[answers.policy] if key not in chosen and can_run(key, answers))
    fallback = (Candidate(key, (Reason("policy", "", START_REASON),), 0.0) for key in starts)
    return (
        *(Candidate(key, _reasons(rules, key), totals[key]) for key in chosen),
        *islice(fallback, NUM_CANDIDATES - len(chosen)),
    )


def _applies(rule: Rule, answers: Answers) -> bool:
    return (rule.question, rule.answer) in answers and answers.policy in rule.policies


def _total_points(rules: Sequence[Rule], policy: str) -> Mapping[str, float]:
    """The points of every method that a rule names, itself or by a tag."""
    totals: dict[str, float] = {}
    for rule in rules:
        for key, points in points_of_methods(rule).items():
            totals[key] = totals.get(key, 0.0) + points
    return {key: points + _claim_points(key, policy) for key, points in totals.items()}


def _reasons(rules: Sequence[Rule], key: str) -> tuple[Reason, ...]:
    """The reasons of the rules that name a method; a tag is one where its question has no other."""
    named = [rule for rule in rules if key in rule.methods]
    questions = {rule.question for rule in named}
    tagged = [r for r in rules if key in points_of_methods(r) and r.question not in questions]
    naming = [rule for rule in rules if rule in named or rule in tagged]
    return tuple(Reason(rule.question, rule.answer, _text(rule, key)) for rule in naming)


def _text(rule: Rule, key: str) -> str:
    """The reason of a rule; of a method that it names by a tag only, the tag's meaning."""
    if key in rule.methods:
        return rule.reason
    tags = [tag for tag in rule.tags if tag in find_method_entry(key).tags]
    return "; ".join(f"has the tag {tag}, {TAGS[tag]}" for tag in tags)


@cache
def points_of_methods(rule: Rule) -> Mapping[str, float]:
    """The points that a rule gives to the methods which it names, itself or by a tag."""
    points = POINTS[rule.question] * rule.weight
    tagged = {e.key: points * TAG_SHARE for e in methods() if {*rule.tags} & {*e.tags}}
    named = {key: points * POSITION_DISCOUNT**i for i, key in enumerate(rule.methods)}
    return tagged | named


def _claim_points(key: str, policy: str) -> float:
    if policy not in CLAIM_POLICIES:
        return 0.0
    return VERDICT_POINTS.get(find_evidence(key).verdict, 0.0)
