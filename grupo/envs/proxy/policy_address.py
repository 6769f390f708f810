"""The address at which an agent reaches the policy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PolicyAddress:
    """How an agent reaches the policy.

    Args:
        base_url: Base URL of the API, which is that of one rollout.
        api_key: The API key.
        model: Name of the model.
    """

    base_url: str
    api_key: str
    model: str = "policy"
