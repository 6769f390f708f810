"""Environments of OpenEnv, which run in a server of their own."""

from grupo.envs.openenv.env import OpenEnv, OpenEnvTasks
from grupo.envs.openenv.text import action_by_schema, render_fields

__all__ = ["OpenEnv", "OpenEnvTasks", "action_by_schema", "render_fields"]
