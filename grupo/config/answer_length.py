"""One length of an answer: that which a method's formulas assume, and the policy's limit."""

from collections.abc import Iterator

from grupo.algo.aggregation import ConstantLength
from grupo.core.component import component_fields, is_component, walk
from grupo.core.interfaces import env_without_placement, single_response
from grupo.envs import SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.util.errors import ConfigError


def check_answer_length(recipe: Recipe) -> None:
    """Raise `ConfigError` if a component of the method assumes another limit than the policy's.

    Rollouts of several turns, and samplers that set token limits of their own, are not checked. A
    constant that token sums are divided by may be any number.
    """
    limit = answer_limit(recipe)
    if not limit or not has_one_answer(recipe):
        return
    for name, length in _assumed_lengths(recipe.method):
        if length != limit:
            raise ConfigError(
                f"policy.max_new_tokens: {limit}, but max_length of {name} in the method is"
                f" {length}. Allowed: one number for both, --policy.max-new-tokens {length} or a"
                f" method with max_length={limit}."
            )


def answer_limit(recipe: Recipe) -> int:
    """The largest number of tokens of an answer; 0 if the policy has none."""
    policy = recipe.policy
    return policy.max_new_tokens if isinstance(policy, CausalLM | MaskedDiffusion) else 0


def method_length(method: Method) -> int:
    """The length of an answer that a method is made for, in tokens; 0 if it states none.

    >>> from grupo.methods.dapo import dapo
    >>> method_length(dapo(max_length=512, overlong_buffer=64)), method_length(Method())
    (512, 0)
    """
    divisors = [a.max_length for a in walk(method.aggregation) if isinstance(a, ConstantLength)]
    lengths = [*(length for _, length in _assumed_lengths(method)), *divisors]
    return lengths[0] if lengths else 0


def has_one_answer(recipe: Recipe) -> bool:
    """Whether a rollout is one answer, whose limit is the policy's."""
    sampler = recipe.method.sampler
    is_plain = isinstance(sampler, GroupSampler) and sampler.turn_strategy is single_response
    return is_plain and isinstance(env_without_placement(recipe.env), SingleTurn)


def _assumed_lengths(method: Method) -> Iterator[tuple[str, int]]:
    """Name and length of every component of the advantage, filter or loss with a `max_length`.

    A component with several, for groups of different difficulty, assumes the largest one.
    """
    for slot in (method.advantage, method.filter, method.loss):
        for part in walk(slot):
            values = component_fields(part) if is_component(part) else {}
            if isinstance(length := values.get("max_length"), int):
                yield type(part).__name__, length
            elif lengths := values.get("max_lengths"):
                yield type(part).__name__, max(lengths)
