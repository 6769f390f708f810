"""A taskset of verifiers with a tool that spells words; the answer is the reversed spelling."""

import verifiers.v1 as vf

__all__ = ["SpellingTaskset"]


class Speller(vf.Toolset[vf.ToolsetConfig]):
    @vf.tool
    async def spell(self, word: str) -> str:
        """Spell a word.

        Args:
            word: the word
        """
        return "-".join(word)


class SpellingTask(vf.Task[vf.TaskData]):
    @classmethod
    def toolsets(cls, config):
        return [Speller(vf.ToolsetConfig())]

    @vf.reward
    async def exact(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == "-".join(reversed(self.data.prompt)))


class SpellingTaskset(vf.Taskset[SpellingTask, vf.TasksetConfig]):
    def load(self):
        yield SpellingTask(vf.TaskData(prompt="ab"), self.config.task)


if __name__ == "__main__":
    Speller.run()
