"""The default size of evaluations, so that they take a small part of a run's time."""

from collections.abc import Collection, Iterator
from math import sqrt

from grupo.config.defaults import Choice, is_set
from grupo.config.run_work import RunWork

MAX_FRAC = 0.2  # of a run's time, for all evaluations
MIN_TASKS = 50  # their 95 % intervals reach up to 14 points to each side
FEWER_ATTEMPTS = 4  # sampled for each task; fewer tasks would widen every interval


def half_width(num_tasks: int) -> float:
    """How far the 95 % interval of a solved fraction of a half reaches to each side: its most.

    >>> round(half_width(50), 2), round(half_width(200), 2)
    (0.14, 0.07)
    """
    return 1.96 * 0.5 / sqrt(num_tasks)


def choose_evaluation(work: RunWork, fields_set: Collection[str]) -> list[Choice]:
    """The held-out tasks and the attempts for each, where the user did not set them.

    First the attempts are reduced, then the tasks, down to `MIN_TASKS`. The same command makes the
    same recipe: its work is counted, not timed.

    Args:
        work: The work of the run with all other choices, and the tasks that are held out by
            default.
        fields_set: Names of the fields that the user set.
    """
    default = work.lengths.held_out, work.recipe.evaluation.attempts
    if not all(default):
        return []
    sizes = list(_sizes(*default, fields_set))
    size = next((size for size in sizes if work.evaluation_frac(*size) <= MAX_FRAC), sizes[-1])
    share = f"all evaluations take about {work.evaluation_frac(*size):.0%} of the run's time"
    if size != default:
        before = f"{work.evaluation_frac(*default):.0%}"
        share += f", and {before} with {default[0]} tasks and {default[1]} attempts"
    tasks, attempts = size
    intervals = f"95% intervals of up to ±{100 * half_width(tasks):.0f} points"
    choices = [Choice("eval_tasks", tasks, f"{share}; {intervals}")]
    if attempts != default[1]:
        choices.append(Choice("evaluation.attempts", attempts, share))
    return [choice for choice in choices if not is_set(choice.field, fields_set)]


def _sizes(num_tasks: int, attempts: int, fields_set: Collection[str]) -> Iterator[tuple[int, int]]:
    """Numbers of tasks and of attempts, the preferred ones first."""
    fewest = num_tasks if is_set("eval_tasks", fields_set) else min(num_tasks, MIN_TASKS)
    fewer = attempts if is_set("evaluation.attempts", fields_set) else FEWER_ATTEMPTS
    yield num_tasks, attempts
    for tasks in range(num_tasks, fewest - 1, -1):
        yield tasks, min(attempts, fewer)
