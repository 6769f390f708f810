"""Tasksets of the library verifiers, which harnesses play."""

from grupo.envs.tasksets.agent import TasksetAgent
from grupo.envs.tasksets.tasks import TasksetTasks

__all__ = ["TasksetAgent", "TasksetTasks"]
