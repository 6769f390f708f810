"""The contents of a checkpoint: their types, checked before anything is made of them.

Checksums show that a file is not damaged. A folder from elsewhere may hold other values, with
checksums that fit.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from grupo.core.field_types import matches_type
from grupo.rollouts.eval_scores import scores_by_step
from grupo.storage.checkpoint import Checkpoint
from grupo.storage.manifest import InvalidCheckpoint
from grupo.training.resume.journals import journal_states

Number = int | float
FIELDS: Mapping[str, Any] = {
    "history": Mapping[str, Any],  # of tasks, for curricula
    "eval_scores": Mapping[str, Mapping[str, Any]],
    "metric_totals": Mapping[str, Number],
    "lengths": Mapping[str, int],  # of the journals, in bytes
    **dict.fromkeys(("generated_tokens", "failed_rollouts", "tokens_per_microbatch"), int),
    **dict.fromkeys(("total_seconds", "training_seconds"), Number),
    **dict.fromkeys(("sampler_logp_diff", "kl"), Number | None),  # of the last step
    **dict.fromkeys(("rollout_queue", "unfinished_groups"), Any),  # `restore_state` reads them
    "finished": bool,
    **dict.fromkeys(("stop_reason", "fingerprint"), str),
}
# scores of an evaluation that are mappings: tokens per answer by "greedy" and "sampled", and tokens
# that the policy of each role has read and generated
NUMBERS_BY_NAME = ("tokens_per_answer", "read_by_role", "generated_by_role")
# the largest whole number; Python refuses to write one of more than 4,300 digits into a message
LARGEST = 10**18
# what is raised by data with missing values or values of another type
WRONG_DATA_ERRORS = (LookupError, TypeError, ValueError, AttributeError)


def check_contents(checkpoint: Checkpoint) -> None:
    """Raise `InvalidCheckpoint` for a checkpoint whose data no run has written, or without weights.

    Args:
        checkpoint: The checkpoint; its tensors are not read.
    """
    if "weights" not in checkpoint.tensors:
        raise InvalidCheckpoint("it has no weights.safetensors")
    check_data(checkpoint)


def check_data(checkpoint: Checkpoint) -> None:
    """Raise `InvalidCheckpoint` if the values of `data.json` cannot come from a run.

    Among them are the checksums of the journals, the files with a line for each step or rollout.
    """
    if problem := next(_problems(checkpoint.data), ""):
        raise InvalidCheckpoint(f"data.json: {problem}")
    try:
        journal_states(checkpoint)
        scores_by_step(checkpoint.data["eval_scores"], checkpoint.step)
    except WRONG_DATA_ERRORS as error:
        raise InvalidCheckpoint(f"its data are not those of a run: {error!r:.200}") from error


def _problems(data: Any) -> Iterator[str]:
    """Problems of the values of `data.json`, in words."""
    if not isinstance(data, Mapping):
        yield f"{data!r:.40} is no object"
        return
    for name, hint in FIELDS.items():
        if name not in data:
            yield f"it has no {name!r}"
        elif not matches_type(data[name], hint) or not _has_sane_numbers(data[name]):
            yield f"{name}: {data[name]!r:.40} is no value of a run"
    for label, scores in data["eval_scores"].items():
        if not _is_evaluation(scores):
            yield f"eval_scores: {label!r:.40} is no evaluation"


def _is_evaluation(scores: Mapping[str, Any]) -> bool:
    """Whether these are the scores of an evaluation.

    Each interval is a pair of numbers, each entry of `NUMBERS_BY_NAME` a mapping to numbers, and
    every other score a number.
    """
    intervals = scores.get("intervals")
    if not isinstance(intervals, Mapping) or not all(map(_is_pair, intervals.values())):
        return False
    others = {name: value for name, value in scores.items() if name != "intervals"}
    return all(
        matches_type(value, Mapping[str, Number] if name in NUMBERS_BY_NAME else Number)
        and _has_sane_numbers(value)
        for name, value in others.items()
    )


def _is_pair(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) == 2
    return is_list and all(matches_type(x, Number) and _has_sane_numbers(x) for x in value)


def _has_sane_numbers(value: Any) -> bool:
    """Whether a number, or each number of a mapping, is a float or at most `LARGEST` in size."""
    values = value.values() if isinstance(value, Mapping) else (value,)
    return not any(isinstance(x, int) and abs(x) > LARGEST for x in values)
