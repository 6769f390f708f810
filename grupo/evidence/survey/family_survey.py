"""The measurement of a family of tasks: pass@k, lengths, and an example of each outcome."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from grupo.core.response_use import generation_only
from grupo.core.types import Group, Rollout
from grupo.evidence.survey.family import FamilyTasks
from grupo.evidence.survey.measure import task_survey
from grupo.rollouts.eval_result import Proportion
from grupo.rollouts.evaluate import HasActor, run_rollouts, scores_of_groups
from grupo.storage.strict_json import from_exact_json, to_exact_json
from grupo.util.rng import derive_key

Bounds = tuple[float, float, float]  # a proportion and its 95 % bootstrap interval over tasks
DIGITS = 4


@dataclass(frozen=True)
class ShownAnswer:
    """An answer with its prompt and the reference answer, as texts."""

    prompt: str
    reference_answer: str
    answer: str


@dataclass(frozen=True)
class FamilySurvey:
    """How often a policy solves the tasks of a family.

    Args:
        tasks: Number of tasks.
        attempts: Sampled attempts at each.
        failed: Attempts that could not be scored; they count as not solved.
        greedy: Fraction of tasks that the greedy attempt solves.
        pass_at_k: For each k, as text, the fraction of tasks that are solved at least once in k
            sampled attempts.
        mixed: Fraction of tasks that some sampled attempts solve and others do not.
        tokens: Tokens that were generated, the greedy attempts included.
        length_mean: Mean length of a sampled answer, in tokens.
        truncated_frac: Fraction of sampled answers that the token limit ended.
        seconds: Time of the measurement.
        right: An answer that solves its task; None if there is none.
        wrong: An answer that does not.
    """

    tasks: int
    attempts: int
    failed: int
    greedy: Bounds
    pass_at_k: Mapping[str, Bounds]
    mixed: float
    tokens: int
    length_mean: float
    truncated_frac: float
    seconds: float
    right: ShownAnswer | None
    wrong: ShownAnswer | None


def survey_family(policy: HasActor, source: FamilyTasks, attempts: int) -> FamilySurvey:
    """Attempt every task once greedily and several times by sampling.

    Args:
        policy: Generates the rollouts; its own limits of an answer may be larger.
        source: The tasks.
        attempts: Sampled rollouts per task.
    """
    started = time.monotonic()
    family, tasks = source.family, source.load()
    with generation_only():
        actor = policy.actor(derive_key(0, "survey of a family", family.name))
    actor = actor.with_stop(*family.stop_strings, max_new_tokens=family.max_new_tokens)
    greedy = run_rollouts(actor.with_sampling(top_k=1), family.env, tasks, 1)
    sampled = run_rollouts(actor.fork("sampled"), family.env, tasks, attempts)
    success = family.success
    tokens = sum(r.length for group in (*greedy, *sampled) for r in group.rollouts)
    scores = scores_of_groups(
        greedy, sampled, num_attempts=attempts, success=success, num_generated_actions=tokens
    )
    rows = [task_survey(group, success) for group in sampled]
    right, wrong = shown_answers(sampled, success)
    return FamilySurvey(
        tasks=len(tasks),
        attempts=attempts,
        failed=scores.num_failed,
        greedy=_bounds(scores.greedy),
        pass_at_k={str(k): _bounds(score) for k, score in scores.pass_at_k.items()},
        mixed=fmean(float(0 < row.pass_rate < 1) for row in rows),
        tokens=tokens,
        length_mean=round(fmean(row.length_mean for row in rows), DIGITS),
        truncated_frac=round(fmean(row.truncated_frac for row in rows), DIGITS),
        seconds=round(time.monotonic() - started, 3),
        right=right,
        wrong=wrong,
    )


def _bounds(score: Proportion) -> Bounds:
    return round(score.value, DIGITS), round(score.low, DIGITS), round(score.high, DIGITS)


def shown_answers(
    groups: Sequence[Group], success: Callable[[Rollout], bool]
) -> tuple[ShownAnswer | None, ShownAnswer | None]:
    """A right and a wrong answer, both of the first task that has both, where there is one.

    Args:
        groups: Scored attempts at tasks.
        success: Decides whether a rollout solves its task.
    """
    outcomes = [(group, [success(rollout) for rollout in group.rollouts]) for group in groups]
    mixed_first = sorted(outcomes, key=lambda outcome: len(set(outcome[1])) < 2)
    right = next((_shown(g, ok.index(True)) for g, ok in mixed_first if True in ok), None)
    wrong = next((_shown(g, ok.index(False)) for g, ok in mixed_first if False in ok), None)
    return right, wrong


def _shown(group: Group, index: int) -> ShownAnswer:
    task = group.task
    prompt = task.prompt if isinstance(task.prompt, str) else task.prompt[-1]["content"]
    reference = "" if task.reference_answer is None else str(task.reference_answer)
    return ShownAnswer(str(prompt), reference, group.rollouts[index].text)


def append_survey(file: Path, labels: Mapping[str, Any], survey: FamilySurvey) -> None:
    """Append a survey to a JSON lines file.

    Args:
        file: The file.
        labels: Further entries of the line, such as the family's name.
        survey: The survey.
    """
    with file.open("a", encoding="utf-8") as lines:
        lines.write(to_exact_json({**labels, **asdict(survey)}) + "\n")


def read_surveys(file: Path) -> Iterator[tuple[Mapping[str, Any], FamilySurvey]]:
    """The labels and the survey of each line of a file; none if there is no file."""
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        data = from_exact_json(line)
        yield {k: v for k, v in data.items() if k not in _FIELDS}, _survey_from(data)


_FIELDS = frozenset(FamilySurvey.__dataclass_fields__)


def _survey_from(data: Mapping[str, Any]) -> FamilySurvey:
    own = {name: data[name] for name in _FIELDS}
    for name in ("right", "wrong"):
        own[name] = ShownAnswer(**own[name]) if own[name] else None
    own["greedy"] = tuple(own["greedy"])
    own["pass_at_k"] = {k: tuple(bounds) for k, bounds in own["pass_at_k"].items()}
    return FamilySurvey(**own)
