"""Which methods run on a finite environment, and what the others need."""

from grupo.core.component import to_code, walk
from grupo.core.interfaces import single_response
from grupo.evidence.exact.signals import is_available
from grupo.method import Method
from grupo.methods.clip_cov import DropHighCovariance
from grupo.methods.krpo import KalmanAdvantage
from grupo.methods.riskpo import MixedRiskAdvantage
from grupo.rollouts.samplers import GroupSampler, Sampler

REWARD_TERMS = {"correct"}  # equal to the reward
# components that draw at random with the last bits of log-probabilities
PSEUDO_RANDOM = (DropHighCovariance, KalmanAdvantage, MixedRiskAdvantage)


def obstacle(method: Method) -> str:
    """The first input of the method that a finite environment lacks; "" if it lacks none.

    >>> from grupo.methods.empo import empo
    >>> obstacle(empo())
    'it reads the reward term `cluster`'
    """
    requires = method.requires
    needs = {
        "its sampler is": _other_sampler(method.sampler),
        "it trains the head": [head.name for head in requires.heads],
        "it reads the task's column": requires.columns,
        "it reads earlier groups of a task:": [type(s).__name__ for s in requires.task_statistics],
        "it reads earlier groups of a source:": [
            type(s).__name__ for s in requires.source_statistics
        ],
        "it reads replays, kept by": [_name(rule) for rule in requires.replay_rules],
        "it reads the number of demonstrations": [str(requires.demonstrations)]
        * bool(requires.demonstrations),
        "its rule of replay is": [_name(method.replay)] * bool(requires.replay_buffer),
        "it reads the reward term": requires.reward_terms - REWARD_TERMS,
        "it draws with the last bits of log-probabilities, which equal answers share:": [
            _name(part) for part in walk(method) if isinstance(part, PSEUDO_RANDOM)
        ],
        "it reads the signal": [name for name in requires.all_signals if not is_available(name)],
    }
    lacking = ((need, sorted(names)) for need, names in needs.items() if names)
    return next((f"{need} {', '.join(f'`{x}`' for x in names)}" for need, names in lacking), "")


def group_size_of(method: Method) -> int:
    """The group size of a method without obstacle."""
    assert isinstance(method.sampler, GroupSampler)
    return method.sampler.group_size


def _other_sampler(sampler: Sampler) -> list[str]:
    """The name of a sampler, or turn strategy, that does not generate one response per rollout."""
    if not isinstance(sampler, GroupSampler):
        return [_name(sampler)]
    is_single = sampler.turn_strategy is single_response
    return [] if is_single else [f"GroupSampler with {_name(sampler.turn_strategy)}"]


def _name(component: object) -> str:
    return to_code(component).partition("(")[0]
