"""Logs of choices and their outcomes, and the gambling bandit."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class OutcomeLog:
    """M recorded choices; an outcome is a pair of return and next state, or a return alone.

    Letters: M choices, S states, A actions, K outcomes.

    Args:
        state: State of each choice.
        action: Action of each choice.
        outcome: Index of the outcome that followed.
        values: Return of each outcome.
        num_states: S.
        num_actions: A.
    """

    state: Int[Tensor, "M"]
    action: Int[Tensor, "M"]
    outcome: Int[Tensor, "M"]
    values: Float[Tensor, "K"]
    num_states: int
    num_actions: int

    def frequencies(self) -> Float[Tensor, "S A K"]:
        """Share of each (state, action, outcome) among all choices."""
        shape = self.num_states, self.num_actions, len(self.values)
        index = (self.state, self.action, self.outcome)
        count = torch.zeros(shape, dtype=self.values.dtype)
        return count.index_put(index, torch.ones_like(self.values[self.outcome]), True) / len(
            self.state
        )


def gambling_bandit(seed: int, size: int = 1000) -> OutcomeLog:
    """Arm 0 pays 5; arm 1 pays 15 or -15 with equal probability; both are pulled equally often.

    Args:
        seed: Draws arms and payments.
        size: Number of pulls.
    """
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=size)
    wins = rng.integers(2, size=size)
    outcome = np.where(arm == 0, 1, 2 * wins)
    values = torch.tensor([-15.0, 5.0, 15.0], dtype=torch.float64)
    state, action, followed = (torch.as_tensor(x) for x in (np.zeros_like(arm), arm, outcome))
    return OutcomeLog(state, action, followed, values, num_states=1, num_actions=2)
