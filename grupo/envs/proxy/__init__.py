"""Agents behind an API of OpenAI's form: `ProxyEnv`."""

from grupo.envs.proxy.env import ProxyEnv
from grupo.envs.proxy.policy_address import PolicyAddress

__all__ = ["PolicyAddress", "ProxyEnv"]
