"""Exact signals of a policy that is a table."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from torch import Tensor

from grupo.core.batch import Signals
from grupo.core.signal_names import CURRENT, SAMPLER, is_comparison, split_name, temperature_of
from grupo.models.token_statistics import DIVERGENCES, TOKEN_SIGNALS

SAMPLING_MODELS = ("old", SAMPLER, CURRENT)
CONSTANT_SIGNALS = {"off_context": 0.0, "sampled": 1.0}


@dataclass(frozen=True)
class PolicyTables:
    """Logits of the policies of an update, (S, V) as tables or (N, T, V) at tokens.

    Args:
        current: The policy that is trained.
        sampling: The policy that sampled the rollouts.
        reference: The reference policy.
    """

    current: Tensor
    sampling: Tensor
    reference: Tensor

    def at(self, rows: Tensor) -> "PolicyTables":
        """The logits at tokens, (N, T, V), from the table's row of each, (N, T)."""
        return PolicyTables(self.current[rows], self.sampling[rows], self.reference[rows])

    def before_update(self) -> "PolicyTables":
        """The same with the sampling policy in place of the trained one."""
        return replace(self, current=self.sampling)

    def of_model(self, model: str) -> Tensor:
        """The logits of the model in a signal's name, such as "ref" or "t=1.2"; "" is the policy.

        The policy at another temperature is measured before the update.
        """
        if factor := temperature_of(model):
            return self.sampling / factor
        named = {"": self.current, "ref": self.reference}
        return named.get(model, self.sampling)


def is_available(name: str) -> bool:
    """True if a table has that signal.

    >>> is_available("entropy"), is_available("logp@ref"), is_available("logp@teacher")
    (True, True, False)
    """
    quantity, model = split_name(name)
    quantities = DIVERGENCES if is_comparison(name) else TOKEN_SIGNALS
    known_model = model in ("", "ref", *SAMPLING_MODELS) or temperature_of(model) > 0
    return name in CONSTANT_SIGNALS or (quantity in quantities and known_model)


def table_signals(
    names: Collection[str], logits: PolicyTables, tokens: Tensor, mask: Tensor
) -> Signals:
    """Signals of each token (N, T) by name, 0 where masked.

    Args:
        names: Names of the signals; `is_available` is true for each.
        logits: Logits at each token.
        tokens: The tokens, (N, T).
        mask: True at tokens of an answer, (N, T).
    """
    values = {name: _signal(name, logits, tokens.flatten()).view(mask.shape) for name in names}
    return Signals({name: x.where(mask, x.new_zeros(())) for name, x in values.items()})


def _signal(name: str, logits: PolicyTables, tokens: Tensor) -> Tensor:
    quantity, model = split_name(name)
    if name in CONSTANT_SIGNALS:
        return logits.current.new_full(tokens.shape, CONSTANT_SIGNALS[name])
    logp = logits.of_model(model).flatten(0, 1).log_softmax(-1)
    if is_comparison(name):
        return DIVERGENCES[quantity](logits.current.flatten(0, 1).log_softmax(-1), logp)
    return TOKEN_SIGNALS[quantity](logp, tokens)
