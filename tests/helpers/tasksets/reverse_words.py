"""A taskset of verifiers: reversed words; the answers "raise" and "hang" make its reward fail."""

import asyncio

import verifiers.v1 as vf

__all__ = ["ReverseTaskset"]
WORDS = ("ab", "cd", "ef", "gh", "ij", "kl")


class ReverseData(vf.TaskData):
    answer: str


class ReverseTask(vf.Task[ReverseData]):
    @vf.reward
    async def exact(self, trace: vf.Trace) -> float:
        text = trace.assistant_messages[-1].content
        if text == "raise":
            raise RuntimeError("no dictionary")
        if text == "hang":
            await asyncio.sleep(60)
        return float(text == self.data.answer)

    @vf.reward(weight=0.1)
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.assistant_messages[-1].content))

    @vf.metric
    async def answers(self, trace: vf.Trace) -> float:
        return float(len(trace.assistant_messages))


class ReverseConfig(vf.TasksetConfig):
    num_words: int = len(WORDS)
    system: str = "Reverse!"


class ReverseTaskset(vf.Taskset[ReverseTask, ReverseConfig]):
    def load(self):
        for word in WORDS[: self.config.num_words]:
            data = ReverseData(prompt=word, system_prompt=self.config.system, answer=word[::-1])
            yield ReverseTask(data, self.config.task)
