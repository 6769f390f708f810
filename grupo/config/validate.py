"""Validation of a whole recipe, once and before anything is loaded."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator
from grupo.algo.minibatches import Updates
from grupo.config.answer_length import check_answer_length
from grupo.config.given_answers import check_given_answers
from grupo.config.staleness import check_staleness
from grupo.config.strategies import SelfChecking, check_heads, check_inside, check_strategy
from grupo.config.supervised import check_supervised
from grupo.config.validate_kinds import check_kinds
from grupo.config.validate_rewards import check_reward_range
from grupo.config.validate_sharding import check_sharding
from grupo.config.validate_signals import check_required_signals
from grupo.config.validate_stopping import check_stopping
from grupo.core.batch import Batch, TaskHistory
from grupo.core.component import component_fields, is_component, to_code, walk
from grupo.core.interfaces import StatefulEnv, env_without_placement
from grupo.core.non_json import describe_non_json
from grupo.core.requires import merged_provides
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.core.serialization import to_data
from grupo.core.task_validator import RowValidator, TaskValidator
from grupo.core.types import Task
from grupo.envs.games import TextArena
from grupo.envs.scored_by_terms import ScoredByTerms
from grupo.method import Method
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.models.role_actor import DEFAULT_ROLE
from grupo.recipe import Recipe, with_max_minibatches
from grupo.rewards.by_column import task_validators
from grupo.rollouts.evaluate import TOTAL_REWARD
from grupo.rollouts.samplers import SelfPlay
from grupo.util.errors import ConfigError, MissingSignalError, suggest
from grupo.util.loader_errors import loader_errors

MAX_STEPS_CHECKED = 200  # steps at which schedules are resolved before the run
MAX_TASKS_CHECKED = 2000  # tasks of a source that are validated; of most sources, all


@runtime_checkable
class HasWarnings(Protocol):
    """A component of the environment that a user should be warned about."""

    @property
    def warnings(self) -> Sequence[str]:
        """One line for each warning."""
        ...


def env_warnings(recipe: Recipe) -> list[str]:
    """The warnings of the environment's components, such as a judge that is not repeatable."""
    parts = (part for part in walk(recipe.env) if isinstance(part, HasWarnings))
    return list(dict.fromkeys(line for part in parts for line in part.warnings))


def check_recipe(recipe: Recipe) -> None:
    """Raise `ConfigError` for the first field of a recipe that cannot work."""
    check_kinds(recipe)
    _check_schedules(recipe)
    _check_learning_rate("learning_rate", recipe.learning_rate, recipe.max_steps)
    _check_learning_rate("aux_head_learning_rate", recipe.aux_head_learning_rate, recipe.max_steps)
    _check_group(recipe)
    _check_update_plan(recipe)
    _check_success_criterion(recipe)
    check_answer_length(recipe)
    check_supervised(recipe)
    check_given_answers(recipe)
    check_required_signals(recipe)
    check_reward_range(recipe)
    check_sharding(recipe, _components(recipe, ""))
    _check_roles(recipe)
    check_heads("method.sampler", recipe.method.sampler, recipe)
    check_inside("method.sampler", recipe.method.sampler, recipe)
    check_strategy("evaluation.turn_strategy", recipe.evaluation.turn_strategy, recipe)
    _check_players(recipe)
    check_staleness(recipe)
    _check_unfinished(recipe)
    _check_replay(recipe)
    check_stopping(recipe)
    for _, component in _components(recipe, ""):
        if isinstance(component, SelfChecking):
            component.check()
    to_data(recipe, on_non_json=describe_non_json)  # raises if recipe.json cannot hold it


def check_columns(method: Method, tasks: Sequence[Task]) -> None:
    """Raise `ConfigError` if no task has a column that the method reads, or a component objects."""
    for name in sorted(method.requires.columns):
        checked = [tasks[i].columns for i in range(min(len(tasks), MAX_TASKS_CHECKED))]
        if not any(name in columns for columns in checked):
            known = dict.fromkeys(column for columns in checked for column in columns)
            raise ConfigError(
                f"tasks: the method reads the column {name!r}, which no task has."
                f" {suggest(name, known)}"
            )
    check_component_tasks(method, tasks)


def check_component_tasks(root: object, *tasks: Sequence[Task]) -> None:
    """Raise `ConfigError` if a component inside `root` cannot handle some of the tasks."""
    for validator in task_validators(root):
        check_tasks(validator, *tasks)
    for part in walk(root):
        if isinstance(part, RowValidator):
            for source in tasks:
                part.validate_every_task(source)


def check_tasks(validator: TaskValidator, *tasks: Sequence[Task]) -> None:
    """Validate the first `MAX_TASKS_CHECKED` tasks of each source."""
    for source in tasks:
        validator.validate_tasks([source[i] for i in range(min(len(source), MAX_TASKS_CHECKED))])


def _components(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every component of a recipe and the prefix of its fields: "", "policy.", "method.sampler." …

    Of tuples of components the prefix is "aux_models[0]." and so on.
    """
    if is_component(value):
        yield path, value
        for name, inner in component_fields(value).items():
            yield from _components(inner, f"{path}{name}.")
    if isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _components(inner, f"{path[:-1]}[{index}].")


def _check_schedules(recipe: Recipe) -> None:
    """Raise if a schedule leaves the range of its field during the run."""
    for name, value in (("method", recipe.method), ("stale_correction", recipe.stale_correction)):
        if any(isinstance(part, Schedule) for part in walk(value)):
            _check_scheduled(name, value, recipe.max_steps)


def _check_scheduled(name: str, value: object, steps: int) -> None:
    for step in _checked_steps(steps):
        try:
            with loader_errors("a schedule"):  # of a user's own, or of numbers that overflow
                resolve_schedules(value, (step + 0.5) / steps)
        except ConfigError as error:
            raise ConfigError(f"{name}, at step {step + 1}: {error}") from error


def _checked_steps(max_steps: int) -> Sequence[int]:
    """Indices of all steps of a run, or of a long run some equally far apart, with both ends."""
    count = min(max_steps, MAX_STEPS_CHECKED)
    return [round(i * (max_steps - 1) / max(count - 1, 1)) for i in range(count)]


def _check_learning_rate(name: str, rate: float | Schedule, steps: int) -> None:
    for step in _checked_steps(steps):
        with loader_errors(name):
            value = resolve_schedules(rate, (step + 0.5) / steps)
        if not 0 <= value < math.inf:
            when = f", {value} at step {step + 1}" * isinstance(rate, Schedule)
            raise ConfigError(f"{name}: {to_code(rate)}{when}. Allowed: 0 or more, finite.")


def _check_group(recipe: Recipe) -> None:
    if recipe.group_size == 1 and _is_zero_for_lone_rollouts(recipe.method.advantage):
        raise ConfigError(
            "method.sampler: a group of 1 rollout has nothing to be compared with, and its"
            " advantage is 0. Allowed: 2 or more with this advantage estimator."
        )


def _check_update_plan(recipe: Recipe) -> None:
    """Raise if a step has fewer groups than minibatches: its plan could never be carried out."""
    plan = recipe.method.updates
    groups = recipe.prompts_per_step
    if isinstance(plan, Updates) and plan.minibatches > groups:
        fitting = with_max_minibatches(plan, groups)
        raise ConfigError(
            f"method.updates.minibatches: {plan.minibatches}. Allowed: at most {groups}, the groups"
            f" of a step (prompts_per_step), because no group is split. Set prompts_per_step to"
            f" {plan.minibatches} or more, or method.updates to {fitting!r}."
        )


def _is_zero_for_lone_rollouts(estimator: AdvantageEstimator) -> bool:
    """True if two groups of one rollout have no advantage, but one group of both has."""
    with suppress(MissingSignalError):
        alone = _advantages_of_pair(estimator, (0, 1))
        together = _advantages_of_pair(estimator, (0, 0))
        return not alone.any() and bool(together.any())
    return False


def _advantages_of_pair(estimator: AdvantageEstimator, groups: tuple[int, int]) -> Tensor:
    """Advantages of two rollouts of one action each, with the rewards 1 and 0."""
    mask = torch.ones(2, 1).bool()
    reward = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch = Batch.of(
        reward,
        torch.tensor(groups),
        rollout=torch.arange(2),
        mask=mask,
        old_logp=-mask.float(),
        history=(TaskHistory(), TaskHistory()),
    )
    return estimator(reward, batch)


def _check_roles(recipe: Recipe) -> None:
    """Raise for a policy whose role nothing has, or that is frozen and has rollouts in groups."""
    roles = recipe.method.provides.roles | merged_provides(recipe.evaluation.turn_strategy).roles
    for path, component in _components(recipe, ""):
        if isinstance(component, RolePolicy) and component.name not in roles:
            hint = suggest(component.name, roles)
            raise ConfigError(f"{path}name: {component.name!r} is no role of the method. {hint}")
    if isinstance(recipe.policy, MultiPolicy):
        _check_frozen_roles(recipe.policy, recipe.method)


def _check_frozen_roles(policy: MultiPolicy, method: Method) -> None:
    """Raise if no policy is trained, or the loss would train a frozen one."""
    policy.check()
    fields = {role.name: f"policy.roles[{i}].trained" for i, role in enumerate(policy.roles)}
    for role in sorted(method.provides.trained_roles or {DEFAULT_ROLE}):
        owner = role if role in fields else DEFAULT_ROLE
        if owner in policy.frozen_roles:
            raise ConfigError(
                f"{fields.get(owner, 'policy.main_trained')}: False, and the groups of"
                f" method.sampler have rollouts of this policy ({role=}), which the loss would"
                " train. Allowed: True; or a sampler whose groups leave these rollouts out."
            )


def _check_players(recipe: Recipe) -> None:
    games = [part for part in walk(recipe.env) if isinstance(part, TextArena)]
    samplers = [part for part in walk(recipe.method.sampler) if isinstance(part, SelfPlay)]
    for game in games:
        for sampler in samplers:
            if sampler.players != game.players:
                raise ConfigError(
                    f"players: SelfPlay has {sampler.players}, and TextArena({game.game!r})"
                    f" {game.players}. Write the same number into both."
                )


def _check_unfinished(recipe: Recipe) -> None:
    """Raise if a sampler continues rollouts whose environment forgets them after a step."""
    if recipe.method.requires.unfinished_rollouts and isinstance(recipe.env, StatefulEnv):
        name = type(recipe.method.sampler).__name__
        raise ConfigError(
            f"env: {type(recipe.env).__name__}, whose sessions end with the step. Allowed with"
            f" {name}, which continues rollouts in later steps: an environment without sessions."
        )


def _check_replay(recipe: Recipe) -> None:
    """Raise if rollouts of a replay buffer, whose tasks are not kept, would need another prompt."""
    reprompted = [model.name for model in recipe.aux_models if model.prompt_override]
    if recipe.method.requires.replay_buffer and reprompted:
        raise ConfigError(
            f"method.replay: {to_code(recipe.method.replay)}, and the auxiliary model"
            f" {reprompted[0]!r} reads another prompt, which a replayed rollout does not have."
            " Allowed: auxiliary models without prompt_override, or no_replay."
        )


def _check_success_criterion(recipe: Recipe) -> None:
    """Raise if success is decided by a reward term that the environment does not return."""
    term = recipe.evaluation.success.reward_term
    env = env_without_placement(recipe.env)
    if term not in ("", TOTAL_REWARD) and isinstance(env, ScoredByTerms):
        names = [reward.name for reward in env.rewards]
        if term.partition("/")[0] not in names:
            hint = suggest(term, (*names, TOTAL_REWARD))
            raise ConfigError(f"evaluation.success.reward_term: {term!r}. {hint}")
