"""Parts of a method that cannot act: ratios that are always 1, advantages that no loss reads."""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from grupo.algo.losses import KL, Clip, Loss, ScaledLoss, SumLoss
from grupo.core.batch import Batch, SignalDict, Signals, TaskHistory
from grupo.core.schedules import resolve_schedules
from grupo.core.signal_names import is_step_value
from grupo.method import Method
from grupo.recipe import updates_per_step

RATIO_SENTENCE = (
    "With one update per step the ratios of freshly sampled actions are 1: what the loss does with"
    " ratios (a clip, a weight) acts only on actions from another context, policy or step"
)
ADVANTAGE_SENTENCE = "The loss reads no advantages: the advantage slot changes no gradient"
GROUPS, GROUP_SIZE, ACTIONS = 3, 4, 5  # of the batch of the check
SPREAD = 0.8  # nats, standard deviation of log-ratios: beyond the bounds of most clips


@cache
def inert_ratio_sentence(method: Method) -> str:
    """`RATIO_SENTENCE` if it is true of the method and its loss is not GRPO's; otherwise "".

    A component that fails on the batch of the check gives no sentence.

    >>> from grupo.algo.losses import Reinforce
    >>> from grupo.algo.minibatches import Updates
    >>> wide = Method(loss=Clip(0.2, 0.28))
    >>> inert_ratio_sentence(wide) == RATIO_SENTENCE
    True
    >>> inert_ratio_sentence(wide.replace(updates=Updates(minibatches=2)))
    ''
    >>> inert_ratio_sentence(Method(loss=Reinforce()))
    ''
    """
    if updates_per_step(method.updates) != 1 or _is_loss_of_grpo(method.loss):
        return ""
    try:
        return RATIO_SENTENCE if _reads_ratios(resolve_schedules(method, 0.5)) else ""
    except Exception:  # a user's component may need more than the batch of the check
        return ""


@cache
def unread_advantage_sentence(method: Method) -> str:
    """`ADVANTAGE_SENTENCE` if all advantages give the loss one gradient; otherwise "".

    A component that fails on the batch of the check gives no sentence.

    >>> from grupo.algo.losses import NLL
    >>> unread_advantage_sentence(Method(loss=NLL())) == ADVANTAGE_SENTENCE
    True
    >>> unread_advantage_sentence(Method())
    ''
    """
    try:
        return "" if _reads_advantages(resolve_schedules(method, 0.5)) else ADVANTAGE_SENTENCE
    except Exception:  # a user's component may need more than the batch of the check
        return ""


def _is_loss_of_grpo(loss: Loss) -> bool:
    """True for `Clip()`, with or without KL."""
    match loss:
        case SumLoss(left, ScaledLoss(_, term)) | SumLoss(left, term) if term == KL():
            return _is_loss_of_grpo(left)
    return loss == Clip()


def _reads_ratios(method: Method) -> bool:
    """True if the gradient of the loss changes with the old log-probs of sampled actions."""
    pi, fresh = _fresh_batch(method)
    noise = torch.randn(fresh.old_logp.shape, generator=torch.Generator().manual_seed(1))
    older = replace(fresh, old_logp=fresh.old_logp - SPREAD * noise.abs())
    newer = replace(fresh, old_logp=fresh.old_logp + SPREAD * noise.abs())
    gradient = _gradient(method, pi, fresh)
    return any(not torch.equal(_gradient(method, pi, batch), gradient) for batch in (older, newer))


def _reads_advantages(method: Method) -> bool:
    """True if the gradient of the loss changes with the advantages."""
    pi, batch = _fresh_batch(method)
    others = batch.with_advantage(lambda x, _: 2 * x.flip(0) - 0.5)
    return not torch.equal(_gradient(method, pi, batch), _gradient(method, pi, others))


def _gradient(method: Method, pi: Signals, batch: Batch) -> Tensor:
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, pi.logp, allow_unused=True, materialize_grads=True)[0]


def _fresh_batch(method: Method) -> tuple[Signals, Batch]:
    """Signals of a policy, and a batch that it has just sampled, with advantages of both signs."""
    generator = torch.Generator().manual_seed(0)
    rollouts = GROUPS * GROUP_SIZE
    shape = (rollouts, ACTIONS)

    def random(name: str) -> Tensor:
        values = 0.1 + 2 * torch.rand(shape, generator=generator, dtype=torch.float64)
        if is_step_value(name):
            return values.round() / 2
        return -values if "logp" in name else values

    requires = method.requires
    logp = random("logp")
    names = sorted({*requires.signals, "logp@sampler"})
    measured = {name: random(name) for name in names}
    measured |= {"logp@sampler": logp, "sampled": logp * 0 + 1, "off_context": logp * 0}
    reward = torch.rand(rollouts, generator=generator, dtype=torch.float64)
    correct = torch.arange(rollouts, dtype=torch.float64) % 2
    batch = Batch.of(
        reward,
        torch.arange(GROUPS).repeat_interleave(GROUP_SIZE),
        rollout=torch.arange(rollouts),
        mask=torch.ones(shape, dtype=torch.bool),
        old_logp=logp,
        signals=SignalDict(measured),
        reward_terms=SignalDict(dict.fromkeys(requires.reward_terms, correct)),
        history=(TaskHistory(),) * GROUPS,
    )
    pi = {name: random(name).requires_grad_() for name in sorted(requires.recomputed_signals)}
    signals = Signals({**pi, "entropy": random("entropy"), "logp": logp.clone().requires_grad_()})
    return signals, batch.with_advantage(lambda x, _: x - 0.5)
