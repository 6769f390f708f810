"""Checks of turn strategies before a run: heads, roles, files, context, and rewards of choices."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from grupo.core.aux_heads import ReadsHeads
from grupo.core.component import component_fields, is_component, to_code, walk
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.interfaces import EnvSpec, TurnStrategy, env_without_placement
from grupo.core.requires import merged_provides
from grupo.core.types import Task
from grupo.core.validation import PromptLimit
from grupo.envs import RewardTerm
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards.by_column import task_validators
from grupo.rewards.choices import ByReward, Least
from grupo.rollouts.turns import GroupThink, SteeredEntropy, StepTreeSearch, Vote, WithProgram
from grupo.rollouts.turns.choices import MostVoted
from grupo.rollouts.turns.private_context import PutsThoughtsInPrompts
from grupo.util.errors import ConfigError, suggest


@runtime_checkable
class SelfChecking(Protocol):
    """A component that can check whether the machine has what it needs, such as a file."""

    def check(self) -> None:
        """Raise `ConfigError` if the machine lacks it."""
        ...


def check_strategy(field: str, strategy: TurnStrategy, recipe: Recipe) -> None:
    """Raise `ConfigError` for a strategy that the recipe's policy cannot carry out.

    Args:
        field: The field or option of the strategy, for the message.
        strategy: How the policy answers one observation.
        recipe: Its method has the heads, and its policy the roles.
    """
    check_heads(field, strategy, recipe)
    roles = [part.name for part in walk(recipe.policy) if isinstance(part, RolePolicy)]
    for role in sorted(merged_provides(strategy).roles):
        if role not in roles:
            raise ConfigError(
                f"{field}: {type(strategy).__name__} needs a policy of the role {role!r}."
                f" {suggest(role, roles)} Or leave the role out: the policy itself replies."
            )
    for part in walk(strategy):
        if isinstance(part, SelfChecking):
            part.check()
        if isinstance(part, ByReward | Least):
            for validator in task_validators(part):
                validator.validate_tasks([Task("choice", "")])
    check_inside(field, strategy, recipe)
    _check_context(field, strategy, recipe)


def _check_context(field: str, strategy: TurnStrategy, recipe: Recipe) -> None:
    """Raise `ConfigError` for texts, thinkers or search trees of a strategy beyond the context.

    A model that cannot be read, such as a toy model before its training, is not checked: who loads
    it says what is wrong.
    """
    kinds = PutsThoughtsInPrompts | StepTreeSearch | WithProgram | GroupThink
    parts = [part for part in walk(strategy) if isinstance(part, kinds)]
    if not parts:
        return
    from grupo.models.prompt_limit import read_prompt_limit  # imports transformers

    limit = None
    with suppress(ConfigError):
        limit = read_prompt_limit(recipe.policy)
    if not limit:
        return
    for part in parts:
        if problem := _context_problem(part, limit):
            raise ConfigError(f"{field}: {problem}")


def _context_problem(
    part: PutsThoughtsInPrompts | StepTreeSearch | WithProgram | GroupThink, limit: PromptLimit
) -> str:
    """Why the texts of a part of a strategy exceed the context; "" if they do not."""
    context, room = limit.context_length, limit.room
    if isinstance(part, StepTreeSearch) and part.max_answer_tokens >= context:
        return (
            f"{to_code(part)}, whose answers may have {part.max_answer_tokens:,} tokens in"
            f" {part.max_steps} steps of {part.max_step_tokens}; the model's context has"
            f" {context:,}, with the prompt. Allowed: a product of max_steps and"
            f" max_step_tokens below {context:,}."
        )
    if isinstance(part, GroupThink) and part.n * limit.max_new_tokens >= context:
        return (
            f"{to_code(part)}, whose thinkers have blocks of {limit.max_new_tokens:,} tokens,"
            f" {part.n * limit.max_new_tokens:,} in all; the model's context has {context:,}, with"
            " the prompt. Allowed: a product of n and the policy's max_new_tokens below"
            f" {context:,}."
        )
    if isinstance(part, WithProgram):
        excess = limit.describe_excess(Task("program", part.load().prompt("")))
        allowed = f", without a task. Allowed: {limit.allowed}."
        return f"WithProgram.file: {part.file!r} has {excess}{allowed}" if excess else ""
    if isinstance(part, PutsThoughtsInPrompts) and part.thought_tokens_in_prompt >= room:
        return (
            f"{type(part).__name__} may put {part.thought_tokens_in_prompt:,} tokens of thoughts"
            f" before the task. A context of {context:,} tokens, with an answer of"
            f" {limit.max_new_tokens:,}, leaves {room:,}. Ask for fewer or shorter"
            " thoughts."
        )
    return ""


def check_inside(field: str, root: object, recipe: Recipe) -> None:
    """Raise `ConfigError` for a part that acts inside the model, of a policy that does not let it.

    The policy that answers is the main one, if there are several.
    """
    parts = [part for part in walk(root) if isinstance(part, GroupThink | SteeredEntropy)]
    if not parts:
        return
    from grupo.models.causal_lm import CausalLM  # imports transformers
    from grupo.models.vision_lm import VisionLM

    policy = recipe.policy
    policy = policy.main_policy if isinstance(policy, MultiPolicy) else policy
    problem = ""
    if isinstance(policy, VisionLM):
        problem = "reads pictures or sound"
    elif not isinstance(policy, CausalLM):
        problem = f"is a {type(policy).__name__}, no causal language model"
    elif policy.engine:
        problem = "generates by a vLLM server"
    if problem:
        raise ConfigError(
            f"{field}: {type(parts[0]).__name__} acts inside the model, and the policy {problem}."
            " Allowed: CausalLM(…), which generates in this process, without engine."
        )


def check_heads(field: str, root: object, recipe: Recipe) -> None:
    """Raise `ConfigError` for a part that reads a head which the recipe's method does not train."""
    heads = [head.name for head in recipe.method.requires.heads]
    for part in walk(root):
        for name in part.read_heads if isinstance(part, ReadsHeads) else ():
            if name not in heads:
                raise ConfigError(
                    f"{field}: {to_code(part)}, and the policy has no head {name!r}."
                    f" {suggest(name, heads)}"
                )


def vote_extractor(strategies: Iterable[TurnStrategy], env: EnvSpec) -> Extractor:
    """The extractor of the answers that self-consistency counts, as the yardstick of strategies.

    Extractors of voting strategies come first, then those of the environment's rewards. The first
    one that is not `final_answer` is returned, or `final_answer` if there is no other.
    """
    voting = (part for strategy in strategies for part in walk(strategy))
    own = [part.extract for part in voting if isinstance(part, Vote | MostVoted)]
    terms = [part for part in walk(env_without_placement(env)) if isinstance(part, RewardTerm)]
    parts = (part for term in terms for part in walk(term.reward) if is_component(part))
    of_rewards = (component_fields(part).get("extract") for part in parts)
    found = (x for x in (*own, *of_rewards) if callable(x) and x is not final_answer)
    return next(found, final_answer)
