"""An environment of verifiers that two agents play."""

import verifiers.v1 as vf
from reverse_words import WORDS, ReverseData, ReverseTask

__all__ = ["TwoPlayersEnv", "TwoPlayersTaskset"]


class TwoPlayersTaskset(vf.Taskset[ReverseTask, vf.TasksetConfig]):
    def load(self):
        for word in WORDS:
            yield ReverseTask(ReverseData(prompt=word, answer=word), self.config.task)


class TwoPlayersConfig(vf.EnvConfig):
    solver: vf.AgentConfig = vf.AgentConfig()
    judge: vf.AgentConfig = vf.AgentConfig()


class TwoPlayersEnv(vf.Env[TwoPlayersConfig]):
    async def run(self, task, agents):
        await agents.solver.run(task)
        await agents.judge.run(task)
