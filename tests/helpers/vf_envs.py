"""Environments of verifiers: reversed words in one turn, a guessing game, and sums with a tool."""

import pytest
from datasets import Dataset

vf = pytest.importorskip("verifiers", reason="verifiers is not installed: `make test-adapters`")

WORDS = ("ab", "cd", "ef", "gh", "ij", "kl")


def rows(**columns):
    return Dataset.from_list(
        [{"question": word, "answer": word[::-1], **columns} for word in WORDS]
    )


def exact(completion, answer):
    return float(completion[-1]["content"] == answer)


async def length(completion, state):
    return len(completion[-1]["content"])


def relative(completions, answers):
    """The share of the group's rollouts that are wrong."""
    wrong = [c[-1]["content"] != a for c, a in zip(completions, answers, strict=True)]
    return [sum(wrong) / len(wrong)] * len(wrong)


def broken(completion, answer):
    if completion[-1]["content"] == "break":
        raise RuntimeError("no dictionary")
    return 0.0


class Guess(vf.MultiTurnEnv):
    """Says "no" until the answer is right; "raise" and "hang" are failures."""

    async def setup_state(self, state):
        state["guesses"] = []

    async def env_response(self, messages, state, **kwargs):
        text = messages[-1].content
        state["guesses"].append(text)
        if text == "raise":
            raise RuntimeError("the game is broken")
        if text == "hang":
            import asyncio

            await asyncio.sleep(5)
        reply = [vf.UserMessage(content=f"no {len(state['guesses'])}")]
        if text == state["answer"]:
            state["final_env_response"] = reply
        return reply


def num_guesses(state):
    return float(len(state["guesses"]))


def add(a: int, b: int) -> int:
    """The sum of two numbers.

    Args:
        a: one number
        b: another
    """
    return a + b


def load_environment(kind: str = "single", max_turns: int = 4):
    if kind == "single":
        rubric = vf.Rubric([exact, length, relative], weights=[1.0, 0.1, 0.0])
        return vf.SingleTurnEnv(dataset=rows(), rubric=rubric, system_prompt="Reverse!")
    if kind == "broken":
        return vf.SingleTurnEnv(dataset=rows(), rubric=vf.Rubric([exact, broken]))
    if kind == "tool":
        return vf.ToolEnv([add], max_turns, dataset=rows(), rubric=vf.Rubric([exact]))
    return Guess(max_turns, dataset=rows(), rubric=vf.Rubric([num_guesses]))
