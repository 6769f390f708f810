"""Scripts of the methods with token budgets."""

from collections.abc import Sequence

from grupo.core.types import Response, Rollout
from grupo.methods.brpo import brpo
from grupo.methods.delethink import delethink
from grupo.methods.elastic_reasoning import elastic_reasoning
from grupo.methods.s_grpo import s_grpo
from grupo.methods.t_ppo import t_ppo
from grupo.rollouts.samplers import AnytimeBudgets, EarlyExits
from tests.reference.rollouts.comparison import Script, Settings
from tests.reference.rollouts.scripts_hints import is_right
from tests.reference.rollouts_plain.record import Answers, Question, Trained

Q = Question("Q", "42")
BUDGETS = (10, 20, 30)
BRPO = {
    "bridge": AnytimeBudgets().cutoff_text + "</think>",
    "opening": AnytimeBudgets().answer_header,
    "traces": 2,
    "budgets": BUDGETS,
    "answers": 2,
    "limit": 6,
}


def thought(*traces: str) -> Answers:
    """Traces in turn, each whole text what a context has not yet; answers by their number."""

    def answers(context: str, n: int) -> str:
        if "Final Answer" in context:
            return f"{n} 42" if n else "no way out"
        begun = context.removeprefix("Q")
        fitting = [trace for trace in traces if trace.startswith(begun)]
        return fitting[n % len(fitting)].removeprefix(begun)

    return answers


def elastic(*texts: str) -> Answers:
    """Thoughts in turn, and answers behind the end of the thinking."""

    def answers(context: str, n: int) -> str:
        if "</think>" in context:
            return f" {n} 42"
        return texts[n % len(texts)]

    return answers


def counted(length: int) -> Answers:
    """Thinking of so many letters, which goes on where a context ends; answers are numbered."""
    return lambda context, n: f"{n}" + "abcdefghij"[n] * (length - 1)


def chunks(lengths: Sequence[int]) -> Answers:
    """The first texts of these lengths, then short or long ones."""

    def answers(context: str, n: int) -> str:
        if context == "Q":
            return "abc"[n] * lengths[n]
        return "xyz"[n % 3] * lengths[-1]

    return answers


DELETHINK = {"chunk": 8, "prefix": 1, "suffix": 3, "chunks": 3, "size": 3}
EXITS = EarlyExits()
INSERTED = EXITS.instruction + EXITS.think_end


def _places(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    begun = [call.removesuffix(INSERTED) for call in calls if call.endswith(INSERTED)]
    return {"places": [len(call) - 1 for call in begun]}


def exits(thinking: str) -> Answers:
    """One path, and answers that are right behind enough of it."""

    def answers(context: str, n: int) -> str:
        if context == "Q":
            return thinking + " path 42"
        if context == f"Q{thinking}":
            return " path 42"
        return " 42" if len(context) > len(f"Qabcd{INSERTED}") else " no"

    return answers


def unfinished(*texts: str) -> tuple[Rollout, ...]:
    """Rollouts that earlier steps have cut."""
    return tuple(
        Rollout(
            (
                (
                    "Q",
                    Response(tuple(text), (-1.0,) * len(text), ("Q",), text, "length"),
                ),
            ),
            0.0,
            unfinished=True,
        )
        for text in texts
    )


T_PPO = {"window": 6, "longest": 14, "size": 3}


def windows(context: str, n: int) -> str:
    """Short and long answers from the prompt, and what is left of them."""
    if context == "Q":
        return ("a 42", "bbbbbbbbbb 42", "c" * 40)[n]
    return {"Qbbbbbb": "bbbb 42", "Qcccccc": "c" * 34, "Qcccccccccccc": "c" * 28}[context]


SCRIPTS = {
    "brpo": [
        Script(
            name,
            brpo(2, BUDGETS, 2, 6, (1.0, 2.0, 3.0)),
            Q,
            thought(*traces),
            is_right,
            BRPO,
            calls_in_order=False,
            is_compared=lambda context: "Final Answer" in context,  # thinking may be in pieces
        )
        for name, traces in (
            ("both traces are cut at the last budget", ("a" * 60, "b" * 60)),
            ("one trace ends in the first segment", ("a</think>", "b" * 60)),
            ("one trace ends in the second segment", ("abcdefghijk</think>", "b" * 60)),
            ("one trace ends at a budget", ("ab</think>", "b" * 60)),
            ("one trace ends at the last budget", ("a" * 22 + "</think>", "b" * 60)),
        )
    ],
    "elastic_reasoning": [
        Script(
            name,
            elastic_reasoning(3, 12, 6),
            Q,
            elastic(*texts),
            is_right,
            {"thinking": 12, "answer": 6, "size": 3},
            calls_in_order=False,
        )
        for name, texts in (
            ("all end in time", ("ab</think>", "cd</think>", "ef</think>")),
            ("some are cut", ("ab</think>", "c" * 30, "d" * 12)),
            ("one ends while thinking", ("ab</think>", "no 42", "d" * 12)),
        )
    ],
    "delethink": [
        Script(
            name,
            delethink(3, 8, 1, 3, 3),
            Q,
            chunks(lengths),
            lambda text: float("x" in text),
            DELETHINK,
            calls_in_order=False,
        )
        for name, lengths in (
            ("all fit into a chunk", (3, 5, 7, 2)),
            ("two have a second chunk", (3, 20, 9, 2)),
            ("two reach the last chunk", (3, 20, 9, 20)),
        )
    ],
    "s_grpo": [
        Script(
            f"{name}, stream {key}",
            s_grpo(3),
            Q,
            exits(thinking),
            is_right,
            {"inserted": INSERTED},
            _places,
            calls_in_order=False,
            key=key,
        )
        for key in range(2)
        for name, thinking in (
            ("a path", "abcdefgh</think>"),
            ("a path of two letters", "ab</think>"),
        )
    ],
    "t_ppo": [
        Script(
            name,
            t_ppo(3, window=6, max_length=14),
            Q,
            windows,
            is_right,
            {**T_PPO, "unfinished": texts},
            task={"unfinished_rollouts": unfinished(*texts)},
        )
        for name, texts in (
            ("a new task", ()),
            ("one is continued and ends", ("b" * 6,)),
            ("one is cut again", ("c" * 6, "b" * 6)),
            ("one reaches the limit", ("c" * 12,)),
        )
    ],
}
