"""Data of several policies in one structure: weights, weight sync and inputs of rows, by role."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import select_input_rows
from grupo.inference.server_sharing import ServerSharing
from grupo.models.base import REPROMPTED_PREFIX
from grupo.models.weight_sync import Weights, WeightSync


def prefix_with_role(weights_by_role: Mapping[str, Weights]) -> dict[str, Tensor]:
    """Weights of all roles by name: `role/name`, and `name` for the default role.

    >>> sorted(prefix_with_role({"": {"w": torch.ones(1)}, "hinter": {"w": torch.ones(1)}}))
    ['hinter/w', 'w']
    """
    return {
        f"{role}/{name}" if role else name: weight
        for role, weights in weights_by_role.items()
        for name, weight in weights.items()
    }


def select_role(role: str, weights: Weights) -> dict[str, Tensor]:
    """Weights of one role from the result of `prefix_with_role`.

    >>> select_role("hinter", {"w": torch.ones(1), "hinter/w": torch.zeros(1)})
    {'w': tensor([0.])}
    """
    selected = dict[str, Tensor]()
    for full_name, weight in weights.items():
        owner, _, name = full_name.rpartition("/")
        if owner == role:
            selected[name] = weight
    return selected


@dataclass(frozen=True)
class WeightSyncByRole:
    """Weight sync of all policies, by role."""

    by_role: Mapping[str, WeightSync]

    def snapshot(self) -> Weights:
        """The current weights of all policies, for `load`."""
        return prefix_with_role({role: sync.snapshot() for role, sync in self.by_role.items()})

    def load(self, weights: Weights) -> None:
        """Generate with these weights from now on."""
        for role, sync in self.by_role.items():
            sync.load(select_role(role, weights))

    def context(self) -> AbstractContextManager[Any]:
        """A context manager that does nothing: each policy enters its own."""
        return nullcontext()

    def share_servers(self, sharing: ServerSharing) -> None:
        """Use the servers of all policies together with other processes."""
        for sync in self.by_role.values():
            sync.share_servers(sharing)

    def release_memory(self) -> None:
        """Release memory that only generation needs; nothing is generated until `load`."""
        for sync in self.by_role.values():
            sync.release_memory()

    def close(self) -> None:
        """Release the resources of all engines."""
        for sync in self.by_role.values():
            sync.close()


@dataclass(frozen=True)
class InputsByRole:
    """Inputs of each policy for all of its rows, by role.

    It is no mapping, so `Batch.select_rows` leaves it whole.
    """

    by_role: Mapping[str, Any]


def rows_by_policy(policy_index: Sequence[int]) -> Mapping[str, Tensor]:
    """Of each row the index of its policy, and its index among that policy's rows.

    >>> rows_by_policy([0, 1, 0])["row_in_policy"].tolist()
    [0, 0, 1]
    """
    index = torch.tensor(policy_index, dtype=torch.long)
    count = torch.nn.functional.one_hot(index).cumsum(0) if policy_index else index[:, None]
    row_in_policy = count.gather(1, index[:, None])[:, 0] - 1
    return {"policy_index": index, "row_in_policy": row_in_policy}


def inputs_of_role(inputs: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """Inputs of these rows for the policy of a role, with those under other prompts."""
    own = select_input_rows(inputs["by_role"].by_role[role], inputs["row_in_policy"])
    reprompted = {
        name: inputs_of_role(x, role)
        for name, x in inputs.items()
        if name.startswith(REPROMPTED_PREFIX)
    }
    return {**own, **reprompted}
