"""Which methods can run for given answers: the checks of a recipe, on a recipe of that kind."""

from collections.abc import Mapping
from functools import cache

from grupo.catalogue.entries import Entry
from grupo.catalogue.search import find_entry
from grupo.config.answer_length import method_length
from grupo.config.validate import check_recipe
from grupo.core.component import component
from grupo.core.requires import merged_requires
from grupo.core.signal_names import is_step_value
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.envs.image_generation import ImageGeneration
from grupo.evidence.suggest.questions import Answers
from grupo.method import Method
from grupo.models.base import AuxModel, PolicySpec
from grupo.models.causal_lm import CausalLM
from grupo.models.flow import Flow
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import GroupSampler
from grupo.util.errors import ConfigError

MODEL = "path/to/model"
ANSWER_LENGTH = 512  # tokens, of methods that fix none
PROMPTS_PER_STEP = 512  # no method has more minibatches
COLUMNS = {"solutions": {"solution"}, "hints": {"hint", "hints"}}
# step values that the environment, the sampler or the policy of that kind provides
STEP_VALUES: Mapping[str, frozenset[str]] = {
    "language": frozenset({"step/node"}),
    "agents": frozenset({"step/node", "step/reward", "step/state", "step/action", "step/belief"}),
    "diffusion-text": frozenset(),
    "images": frozenset({"step/node", "step/depth", "step/std", "step/dt"}),
}
# samplers beside `GroupSampler` that a policy other than a causal language model can serve
IMAGE_SAMPLERS = frozenset({"SingleStepBranching", "SplitTree"})
# samplers that read probabilities of given texts, which a vLLM server does not return
SCORING_SAMPLERS = frozenset({"EntropyBranching", "WithAnswerBelief"})
# tags of methods that are about something that a policy of the kind does not have
FOREIGN_TAGS: Mapping[str, frozenset[str]] = {
    "language": frozenset({"diffusion", "agents", "self-play", "multimodal"}),
    "agents": frozenset({"diffusion", "self-play", "multimodal"}),
    "diffusion-text": frozenset({"agents", "self-play", "multimodal", "tree", "hints"}),
    "images": frozenset({"agents", "self-play", "hints"}),
}
TEXT_METHODS = frozenset({"mm_upt", "trust_grpo"})  # tagged multimodal, and run on texts
DIFFUSION_TEXT_METHODS = frozenset({"coupled_grpo", "justgrpo"})
SOFT_METHODS = frozenset({"soft_grpo"})  # only for `SoftThinkingLM`
LABEL_FREE_METHODS = frozenset({"opd", "gkd", "dft"})  # learn from a teacher, or from solutions


@component
class _NoTasks:
    """Tasks of the recipe that is checked; none are loaded."""

    def load(self) -> tuple[Task, ...]:
        return ()


def can_run(key: str, answers: Answers) -> bool:
    """Whether a method can run for these answers, with reward terms that the user provides."""
    has_teacher = answers.extra == "teacher"
    return (
        _fits_rewards(key, answers.reward)
        and _fits_sampler(key, answers.sampler)
        and _columns(key) <= COLUMNS.get(answers.extra, set())
        and _fits_policy(key, answers.policy)
        and _passes_checks(key, answers.policy, has_teacher=has_teacher)
    )


@cache
def find_method_entry(key: str) -> Entry:
    """The entry of a method in the catalogue."""
    return find_entry(key)


@cache
def example_method(key: str) -> Method:
    """The method that the example of its entry returns."""
    return find_method_entry(key).method


@cache
def _columns(key: str) -> frozenset[str]:
    return example_method(key).requires.columns


@cache
def _fits_policy(key: str, policy: str) -> bool:
    entry = find_method_entry(key)
    if entry.key in SOFT_METHODS:
        return False
    if entry.key in DIFFUSION_TEXT_METHODS:
        return policy == "diffusion-text"
    tags = FOREIGN_TAGS[policy].intersection(entry.tags)
    if tags - {"multimodal"} or (tags and entry.key not in TEXT_METHODS):
        return False
    if policy == "diffusion-text" and "diffusion" in entry.tags:
        return False
    method = example_method(key)
    step_values = {name for name in method.requires.all_signals if is_step_value(name)}
    return step_values <= STEP_VALUES[policy] and _fits_generation(method, policy)


def _fits_generation(method: Method, policy: str) -> bool:
    """Whether a policy can serve the sampler and train the heads of a method."""
    if policy in ("language", "agents"):
        return True
    name = type(method.sampler).__name__
    is_plain = isinstance(method.sampler, GroupSampler) and method.sampler == GroupSampler(
        method.sampler.group_size
    )
    return not method.requires.heads and (
        is_plain or (policy == "images" and name in IMAGE_SAMPLERS)
    )


@cache
def _fits_rewards(key: str, reward: str) -> bool:
    entry = find_method_entry(key)
    is_unlabelled = "unsupervised" in entry.tags
    if reward == "none":
        return is_unlabelled or key in LABEL_FREE_METHODS
    if reward == "comparisons":
        return not is_unlabelled and "correct" not in example_method(key).requires.reward_terms
    is_comparison = "preferences" in entry.tags and "diffusion" not in entry.tags
    return not is_unlabelled and not is_comparison


@cache
def _fits_sampler(key: str, sampler: str) -> bool:
    if sampler == "local":
        return True
    method = example_method(key)
    reads = merged_requires(method.sampler)
    if sampler == "stale":  # the same check as that of `max_staleness`
        return not (reads.current_heads or reads.unfinished_rollouts)
    return not (type(method.sampler).__name__ in SCORING_SAMPLERS or reads.current_heads)


@cache
def _passes_checks(key: str, policy: str, *, has_teacher: bool) -> bool:
    """Whether `grupo train` would accept a recipe of that kind with the method."""
    try:
        check_recipe(_recipe(example_method(key), policy, has_teacher=has_teacher))
    except ConfigError:
        return False
    return True


def _recipe(method: Method, policy: str, *, has_teacher: bool) -> Recipe:
    names = {name.partition("/")[0] for name in method.requires.reward_terms}
    terms = tuple(RewardTerm(name, ExactMatch()) for name in sorted({"reward", *names}))
    spec = _policy(policy, method_length(method) or ANSWER_LENGTH)
    return Recipe(
        policy=spec,
        env=ImageGeneration(terms) if policy == "images" else SingleTurn(terms),
        tasks=_NoTasks(),
        method=method,
        max_steps=1,
        prompts_per_step=PROMPTS_PER_STEP,
        aux_models=(AuxModel("teacher", spec),) if has_teacher else (),
    )


def _policy(policy: str, length: int) -> PolicySpec:
    if policy == "images":
        return Flow(MODEL, device="cpu")
    if policy == "diffusion-text":
        return MaskedDiffusion(MODEL, device="cpu", max_new_tokens=length)
    return CausalLM(MODEL, device="cpu", max_new_tokens=length)
