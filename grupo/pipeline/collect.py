"""Samples rollouts and writes them as tasks: `completion` for SFT, `chosen`/`rejected` for DPO."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grupo.config.success import with_default_reward_term
from grupo.config.tool_formats import with_tool_formats
from grupo.core.interfaces import Actor, TurnStrategy
from grupo.core.media import Media
from grupo.core.private_turns import record_rejected_answers
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json, sum_counts
from grupo.distributed.phase import Phase
from grupo.pipeline.data_stage import data_file_with_summary, sampling_inputs
from grupo.pipeline.rows import Row, RowsOfGroup
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import sample_groups
from grupo.rollouts.samplers import FixedGroupSize, GroupSampler, Sampler
from grupo.training.callbacks import Callback
from grupo.util.exit_codes import EXIT_FAILED, CommandError
from grupo.util.rng import derive_key

ROWS_FILE = "tasks.jsonl"
ROLLOUTS_AT_ONCE = 512  # rollouts that are sampled concurrently; a larger group is sampled alone


@dataclass(frozen=True)
class SampledGroups:
    """The groups of a stage, and what they cost.

    Args:
        groups: A group for each task.
        generated: Number of generated tokens by role. Rollouts that the sampler dropped count, and
            so do responses that a turn strategy sampled and did not return.
        read: Number of read tokens by role.
        usage: External usage, such as calls of a judge, and the counts that the turn strategy adds
            to it, by name.
    """

    groups: Sequence[Group]
    generated: Mapping[str, int]
    read: Mapping[str, int]
    usage: Mapping[str, float]


@dataclass(frozen=True)
class WithRejected:
    """Runs a turn strategy, and stores the answers that it rejected in `Rollout.rejected`.

    Only a rollout of one turn keeps them: a preference pair is a prompt and two whole answers. A
    second turn clears them.

    Args:
        inner: The strategy.
    """

    inner: TurnStrategy

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        with record_rejected_answers() as rejected:
            answered = await self.inner(actor, rollout, observation)
        is_first_turn = not rollout.turns
        return replace(answered, rejected=tuple(rejected) if is_first_turn else ())


class NothingCollectedError(CommandError):
    """No row was made from any of the sampled groups."""

    exit_code = EXIT_FAILED


def sample_task_groups(
    recipe: Recipe,
    rollouts_per_task: int,
    max_tasks: int,
    callback: Callback,
    ranks: Ranks,
    sampler: Sampler | None = None,
) -> SampledGroups:
    """Sample a group of scored rollouts for each training task of a recipe, with its policy.

    Args:
        recipe: The recipe.
        rollouts_per_task: Size of a group if `sampler` is None. For a sampler without a fixed size
            of groups, the size by which the number of tasks at once is chosen.
        max_tasks: Number of the first tasks that are used; 0 uses all tasks.
        callback: Receives a message about prompts that are too long.
        ranks: The processes that share the rollouts. Every rank returns the groups of all tasks.
        sampler: Generates the group of a task. None generates independent rollouts.
    """
    recipe = with_tool_formats(recipe)
    sampler = sampler or GroupSampler(
        rollouts_per_task, WithRejected(recipe.evaluation.turn_strategy)
    )
    group_size = sampler.group_size if isinstance(sampler, FixedGroupSize) else 0
    tasks_at_once = max(1, ROLLOUTS_AT_ONCE // (group_size or rollouts_per_task))
    groups: list[Group] = []
    generated, read, usage = Counter[str](), Counter[str](), Counter[str]()
    with sampling_inputs(recipe, max_tasks, callback, ranks) as inputs:
        for first in range(0, len(inputs.tasks), tasks_at_once):
            with generation_only():  # no update follows: the engine keeps nothing for one
                actor = inputs.policy.actor(derive_key(recipe.seed, "collect", first))
            tasks = inputs.tasks[first : first + tasks_at_once]
            tasks = [replace(task, group_size=0) for task in tasks]  # 0: the sampler's own size
            with count_external_usage() as own_usage:
                groups += sample_groups(actor, recipe.env, tasks, sampler, ranks)
            own_counts = [actor.generated_tokens, actor.read_tokens, own_usage]
            counts_of_ranks = exchange_json(ranks, own_counts, Phase.ANSWERS_COLLECTED, "generate")
            generated_by_rank, read_by_rank, usage_by_rank = zip(*counts_of_ranks, strict=True)
            generated.update(sum_counts(generated_by_rank))
            read.update(sum_counts(read_by_rank))
            usage.update(sum_counts(usage_by_rank))
    return SampledGroups(groups, dict(generated), dict(read), dict(usage))


def write_rows(
    folder: Path,
    recipe: Recipe,
    sampled_groups: SampledGroups,
    rows_of_group: RowsOfGroup,
    callback: Callback,
    *,
    seconds: float = 0.0,
) -> None:
    """Make rows of the sampled groups, and write each row as a task to `tasks.jsonl`.

    Args:
        folder: The folder of the stage.
        recipe: The recipe of the stage.
        sampled_groups: The groups, and what they cost.
        rows_of_group: Makes the rows of a group.
        callback: Receives a message about the result.
        seconds: Time in which the groups were generated, for the summary.

    Raises:
        NothingCollectedError: `rows_of_group` makes no row from any group.
    """
    groups = sampled_groups.groups
    lines = _row_lines(folder, recipe, groups, rows_of_group)
    summary = {
        "seed": recipe.seed,
        "tasks": len(groups),
        "rows": len(lines),
        "failed": sum(bool(rollout.error) for group in groups for rollout in group.rollouts),
        "tokens": sum(sampled_groups.generated.values()),
        "read_tokens": sum(sampled_groups.read.values()),
        "generated_by_role": sampled_groups.generated,
        "read_by_role": sampled_groups.read,
        "usage": sampled_groups.usage,
        "seconds": round(seconds, 2),
    }
    with data_file_with_summary(folder / ROWS_FILE, summary) as path:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    usage_text = "".join(f", {name} {n:g}" for name, n in sampled_groups.usage.items())
    callback.on_message(
        f"{len(lines)} rows of {len(groups)} tasks were collected{usage_text}: {folder / ROWS_FILE}"
    )


def _row_lines(
    folder: Path, recipe: Recipe, groups: Sequence[Group], rows_of_group: RowsOfGroup
) -> list[str]:
    """The rows of the groups as lines of JSON; raises if there is none."""
    criterion = with_default_reward_term(recipe.evaluation.success, recipe.env)
    lines = [
        json.dumps({**_task_columns(group.task), **row}, allow_nan=False, default=_data_url)
        for group in groups
        for row in rows_of_group([r for r in group.rollouts if not r.error], criterion)
    ]
    if not lines:
        raise NothingCollectedError(
            f"{folder}: {getattr(rows_of_group, '__name__', rows_of_group)} made no row from any of"
            f" the {len(groups)} groups. Sample more rollouts per task, or begin with a policy that"
            " solves some of the tasks."
        )
    return lines


def _task_columns(task: Task) -> Row:
    """The prompt and the reference answer of a task, and its columns that JSON can represent."""
    columns = {name: value for name, value in task.columns.items() if _is_json(value)}
    answer = {} if task.reference_answer is None else {"answer": task.reference_answer}
    prompt = task.prompt if isinstance(task.prompt, str) else list(task.prompt)
    return {**columns, "prompt": prompt, **answer}


def _data_url(value: object) -> str:
    """The data URL of an image, video or audio, for `json.dumps`; raises for another object."""
    if isinstance(value, Media):
        return value.data_url
    raise TypeError(f"a {type(value).__name__}, which JSON cannot hold")


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
