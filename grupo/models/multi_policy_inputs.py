"""What several policies share: weights by one name, a voice, inputs of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import select_input_rows
from grupo.models.weight_sync import Weights, WeightSync


def prefix_with_role(weights_by_role: Mapping[str, Weights]) -> dict[str, Tensor]:
    """Weights of several by one name: `role/name`, and `name` where there is no role.

    >>> sorted(prefix_with_role({"": {"w": torch.ones(1)}, "hinter": {"w": torch.ones(1)}}))
    ['hinter/w', 'w']
    """
    return {
        f"{role}/{name}" if role else name: x
        for role, weights in weights_by_role.items()
        for name, x in weights.items()
    }


def select_role(role: str, weights: Weights) -> dict[str, Tensor]:
    """Those of a role among what was `term_names`.

    >>> select_role("hinter", {"w": torch.ones(1), "hinter/w": torch.zeros(1)})
    {'w': tensor([0.])}
    """
    split = {name: name.rpartition("/") for name in weights}
    return {own: weights[name] for name, (whose, _, own) in split.items() if whose == role}


@dataclass(frozen=True)
class WeightSyncByRole:
    """The voice of each, by role."""

    by_role: Mapping[str, WeightSync]

    def snapshot(self) -> Weights:
        """The weights of all as they are now."""
        return prefix_with_role({role: voice.snapshot() for role, voice in self.by_role.items()})

    def load(self, weights: Weights) -> None:
        """Let each speak with its own from now on."""
        for role, voice in self.by_role.items():
            voice.load(select_role(role, weights))

    def close(self) -> None:
        """Nothing is to be said any more."""
        for voice in self.by_role.values():
            voice.close()


@dataclass(frozen=True)
class InputsByRole:
    """What each policy needs to evaluate its rows, by role: all of them, whoever is looked at.

    It is no mapping, so that a batch which takes some of its rows leaves it as it is.
    """

    by_role: Mapping[str, Any]


def rows_by_policy(policy_index: Sequence[int]) -> Mapping[str, Tensor]:
    """Of each row whose it is, and its place among theirs.

    >>> rows_by_policy([0, 1, 0])["place"].tolist()
    [0, 0, 1]
    """
    of_row = torch.tensor(policy_index, dtype=torch.long)
    before = torch.nn.functional.one_hot(of_row).cumsum(0) if policy_index else of_row[:, None]
    return {"whose": of_row, "place": before.gather(1, of_row[:, None])[:, 0] - 1}


def inputs_of_role(inputs: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """What the policy of a role evaluates these rows by, as they are and in every view."""
    views = {
        name: inputs_of_role(x, role) for name, x in inputs.items() if name.startswith("view/")
    }
    return {**select_input_rows(inputs["each"].by_role[role], inputs["place"]), **views}
