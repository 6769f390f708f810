"""Check of losses on given answers, which have no log-probability under a policy that sampled."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from grupo.core.batch import Batch, SignalDict, Signals, TaskHistory
from grupo.core.component import to_code, walk
from grupo.core.requires import Provides
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, MissingSignalError

OLD_LOGPS = (  # of two pairs of two tokens: two values of each, between which no loss may tell
    ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    ((-0.3, -1.1), (-2.0, -0.2), (-0.6, -0.9), (-0.1, -1.7)),
)


def check_given_answers(recipe: Recipe) -> None:
    """Raise `ConfigError` if a method reads the old log-probability of answers that are given."""
    method = recipe.method
    if not method.provides.given or not _reads_old_logp(method):
        return
    raise ConfigError(
        f"method.sampler: {_name_of_given(method)}, whose answers are given or chosen, not sampled,"
        f" and the method takes their ratio to the sampling policy: {to_code(method.loss)}."
        " Allowed with given answers: a loss without that ratio, such as dpo(); with this loss, a"
        " sampler that generates, such as GroupSampler(8)."
    )


def _name_of_given(method: Method) -> str:
    """The name of the sampler whose answers are given."""
    for part in walk(method.sampler):
        provides = getattr(part, "provides", None)
        if isinstance(provides, Provides) and provides.given:
            return type(part).__name__
    return type(method.sampler).__name__


def _reads_old_logp(method: Method) -> bool:
    """True if advantages or loss of given answers depend on their old log-probability."""
    method = resolve_schedules(method, 0.5)
    with suppress(MissingSignalError):
        losses = [_token_losses(method, _given_pairs(method, logp)) for logp in OLD_LOGPS]
        return not torch.equal(*losses)
    return False


def _token_losses(method: Method, batch: Batch) -> Tensor:
    batch = batch.with_advantage(method.advantage)
    names = {"logp", *method.requires.all_signals}
    pi = Signals({name: torch.full_like(batch.old_logp, -0.5) for name in names})
    return method.loss(pi, batch) * batch.mask


def _given_pairs(method: Method, old_logp: Sequence[Sequence[float]]) -> Batch:
    """Two pairs of given answers of two tokens, with every input that the method declares."""
    mask = torch.ones(4, 2).bool()
    reward = torch.tensor([1.0, 0.0] * 2, dtype=torch.float64)
    values = torch.full(mask.shape, -0.7, dtype=torch.float64)
    signals = dict.fromkeys(method.requires.all_signals, values)
    batch = Batch.of(
        reward,
        torch.tensor([0, 0, 1, 1]),
        rollout=torch.arange(4),
        mask=mask,
        old_logp=torch.tensor(old_logp, dtype=torch.float64),
        signals=SignalDict({**signals, "sampled": values * 0, "off_context": values * 0}),
        reward_terms=SignalDict(dict.fromkeys(method.requires.reward_terms, reward)),
    )
    return replace(batch, history=(TaskHistory(),) * 2)
