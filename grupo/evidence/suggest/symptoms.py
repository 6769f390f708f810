"""Answers to the five questions from a run's metrics: its policy, its rewards, its problems.

A problem that `grupo doctor` finds too is found by its check; other thresholds are those of
docs/metrics.md.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from grupo.evidence.suggest.questions import PROBLEM
from grupo.report.checks.load_run import load_run
from grupo.report.checks.optimization import growing_kl
from grupo.report.checks.progress import entropy_collapse, length_growth, truncated_completions
from grupo.report.checks.run_data import MIN_STEPS, RunData
from grupo.util.errors import ConfigError

MIN_NONZERO_STD_FRAC = 0.2  # docs/metrics.md: healthy is 0.2 to 0.9
MAX_CLIP_FRAC = 0.1
MAX_UNUSED_FRAC = 0.5
MAX_IDENTICAL_FRAC = 0.5
SECONDS_FRAC = 0.8  # of a step


@dataclass(frozen=True)
class Symptom:
    """A problem that a run shows.

    Args:
        problem: An answer to the question `problem`.
        details: The numbers.
    """

    problem: str
    details: str


@dataclass(frozen=True)
class RunAnswers:
    """Answers that a run gives.

    Args:
        policy: Kind of its policy.
        reward: How its answers are scored.
        sampler: Where its rollouts are generated.
        symptoms: Its problems, the most important first.
        max_new_tokens: The token limit of its answers; 0 if it has none.
    """

    policy: str
    reward: str
    sampler: str
    symptoms: tuple[Symptom, ...]
    max_new_tokens: int = 0

    @property
    def answers(self) -> dict[str, str]:
        """An answer to each question; beside prompts and rewards it is known to have nothing."""
        return {
            "policy": self.policy,
            "reward": self.reward,
            "extra": "nothing",
            "problem": self.symptoms[0].problem if self.symptoms else "unknown",
            "sampler": self.sampler,
        }


def read_answers(folder: Path) -> RunAnswers:
    """The answers of a run.

    Raises:
        ConfigError: The folder holds no run, or one of fewer steps than show a trend.
    """
    run = load_run(folder)
    if len(run.steps) < MIN_STEPS:
        raise ConfigError(
            f"run: {str(folder)!r} has {len(run.steps)} steps. Allowed: {MIN_STEPS} or more, the"
            " fewest that show a trend."
        )
    policy = _policy_kind(run)
    allowed = PROBLEM.allowed(policy)
    symptoms = tuple(s for s in find_symptoms(run) if s.problem in allowed)
    limit = _component(run, "policy").get("max_new_tokens", 0)
    max_new_tokens = limit if isinstance(limit, int) else 0
    return RunAnswers(policy, _reward_kind(run), _sampler_kind(run), symptoms, max_new_tokens)


def find_symptoms(run: RunData) -> list[Symptom]:
    """The problems of a run, in the order in which they should be mended."""
    return [symptom for detector in DETECTORS for symptom in detector(run)]


def _signal(run: RunData) -> Iterable[Symptom]:
    share = run.last_window("groups/nonzero_std_frac").mean
    reward = run.last_window("reward/mean").mean
    if share < MIN_NONZERO_STD_FRAC:
        low, high = run.reward_range
        problem = "too-easy" if reward > (low + high) / 2 else "too-hard"
        yield Symptom(
            problem,
            f"rewards differ in {share:.0%} of the groups of the last steps (healthy:"
            f" {MIN_NONZERO_STD_FRAC:.0%} or more), at a mean reward of {reward:.3g}",
        )


def _mismatch(run: RunData) -> Iterable[Symptom]:
    difference = run("sampler_mismatch/logp_diff_mean").mean
    if difference > run.max_logp_diff:
        yield Symptom(
            "mismatch",
            f"log-probabilities of sampler and trainer differ by {difference:.2g} nats on average"
            f" (healthy: below {run.max_logp_diff})",
        )


def _clipping(run: RunData) -> Iterable[Symptom]:
    low, high = (run(f"clip_frac/{side}").mean for side in ("low", "high"))
    worst = max((x for x in (low, high) if isfinite(x)), default=0.0)
    if worst > MAX_CLIP_FRAC:
        yield Symptom(
            "unstable",
            f"{worst:.0%} of the tokens of one sign are outside the clip range (healthy: below"
            f" {MAX_CLIP_FRAC:.0%})",
        )


def _entropy(run: RunData) -> Iterable[Symptom]:
    yield from (Symptom("entropy", finding.details) for finding in entropy_collapse(run))


def _truncation(run: RunData) -> Iterable[Symptom]:
    yield from (Symptom("truncated", finding.details) for finding in truncated_completions(run))


def _length(run: RunData) -> Iterable[Symptom]:
    yield from (Symptom("too-long", finding.details) for finding in length_growth(run))


def _kl(run: RunData) -> Iterable[Symptom]:
    yield from (Symptom("drift", finding.details) for finding in growing_kl(run))


def _diversity(run: RunData) -> Iterable[Symptom]:
    groups = [group for group in run.recent_groups if group.num_rollouts > 1]
    identical = sum(group.distinct_texts == 1 for group in groups)
    if groups and identical >= MAX_IDENTICAL_FRAC * len(groups):
        yield Symptom(
            "diversity", f"all answers are equal in {identical} of {len(groups)} recent groups"
        )


def _cost(run: RunData) -> Iterable[Symptom]:
    unused, generated = (run.last_window(f"tokens/{name}").mean for name in ("unused", "generated"))
    if unused > MAX_UNUSED_FRAC * generated:
        yield Symptom(
            "cost", f"{unused / generated:.0%} of the generated tokens were not trained on"
        )
    time = run.last_window("time_frac/generate").mean
    if time > SECONDS_FRAC:
        yield Symptom("cost", f"generation takes {time:.0%} of the time of a step")


Detector = Callable[[RunData], Iterable[Symptom]]
DETECTORS: tuple[Detector, ...] = (
    _mismatch,
    _signal,
    _clipping,
    _entropy,
    _kl,
    _diversity,
    _truncation,
    _length,
    _cost,
)


def _component(run: RunData, field: str) -> dict[str, Any]:
    value = run.recipe.get(field, {})
    return value if isinstance(value, dict) else {}


def _class_name(data: dict[str, Any]) -> str:
    return str(data.get("component", "")).rpartition(":")[2]


def _policy_kind(run: RunData) -> str:
    kinds = {"Flow": "images", "MaskedDiffusion": "diffusion-text"}
    policy = _class_name(_component(run, "policy"))
    is_multi_turn = _class_name(_component(run, "env")) not in ("", "SingleTurn", "ImageGeneration")
    return kinds.get(policy, "agents" if is_multi_turn else "language")


def _reward_kind(run: RunData) -> str:
    rewards = _component(run, "env").get("rewards", ())
    if isinstance(rewards, list | tuple) and len(rewards) > 1:
        return "terms"
    values = {reward for group in run.groups for reward in group.rewards}
    return "verifier" if len(values) <= 2 else "graded"


def _sampler_kind(run: RunData) -> str:
    if run.recipe.get("max_staleness") or any(x > 0 for x in run("staleness").values):
        return "stale"
    return "engine" if _component(run, "policy").get("engine") else "local"
