"""Scripts of the methods whose rollouts differ by prompt, beginning or sampling."""

from collections.abc import Sequence

from grupo.methods.adaptthink import adaptthink
from grupo.methods.aepo import aepo
from grupo.methods.gcpo import gcpo
from grupo.methods.hbpo import hbpo
from grupo.methods.hgpo_hybrid import hgpo_hybrid
from grupo.methods.ps_grpo import ps_grpo
from grupo.methods.remax import remax
from grupo.methods.tldr import INSTRUCTIONS, tldr
from grupo.rollouts.samplers import GroupPart
from tests.reference.rollouts.comparison import Script, Settings
from tests.reference.rollouts.scripted import Model
from tests.reference.rollouts.scripts_hints import is_right, right_behind
from tests.reference.rollouts_plain.record import Question, Trained

Q = Question("Q", "42")
PARAPHRASED = Question("Q", "42", {"paraphrases": ["Q?", "What is Q?", "Tell Q"]})
PARTS = (GroupPart(1.0, "With: "), GroupPart(0.0, "Without: "), GroupPart(0.5))
STARTS = {"starts": [(1.0, "With: "), (0.0, "Without: "), (0.5, "")], "size": 6}


def _drawn_starts(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    return {"draws": [int(not row.text.startswith("</think>")) for row in rows]}


def some_right(context: str, n: int) -> str:
    """Right in every second call with a context."""
    return f" {n}: 42" if n % 2 else f" {n}: no"


SCRIPTS = {
    "hbpo": [
        Script(f"{size} answers", hbpo(size), Q, some_right, is_right, {"size": size})
        for size in (16, 8)
    ],
    "hgpo_hybrid": [
        Script(f"{size} answers", hgpo_hybrid(size), Q, some_right, is_right, {"size": size})
        for size in (4, 6)
    ],
    "tldr": [
        Script(
            f"{size} answers",
            tldr(64, size),
            Q,
            some_right,
            is_right,
            {"suffixes": INSTRUCTIONS, "size": size},
        )
        for size in (12, 6)
    ],
    "gcpo": [
        Script("three parts", gcpo(64, 6, parts=PARTS), Q, some_right, is_right, STARTS),
        Script(
            "two parts",
            gcpo(64, 4, parts=PARTS[:2]),
            Q,
            some_right,
            is_right,
            {"starts": STARTS["starts"][:2], "size": 4},
        ),
        Script(
            "no parts",
            gcpo(64, 4),
            Q,
            some_right,
            is_right,
            {"starts": [], "size": 4},
        ),
    ],
    "adaptthink": [
        Script(
            f"stream {key}",
            adaptthink(4),
            Question("Q", "42", {"pass_rate": 0.25}),
            some_right,
            is_right,
            read=_drawn_starts,
            key=key,
        )
        for key in range(4)
    ],
    "aepo": [
        Script(
            "before the first step", aepo(3, 2), Q, some_right, is_right, {"size": 3, "extra": 2}
        ),
        Script(
            "other numbers", aepo(2, 4), Q, right_behind("?"), is_right, {"size": 2, "extra": 4}
        ),
    ],
    "remax": [
        Script(
            name,
            remax(size),
            Q,
            some_right,
            is_right,
            {"greedy": greedy, "size": size},
            model=Model(greedy=lambda context, greedy=greedy: greedy),
        )
        for name, size, greedy in (
            ("the greedy answer is right", 1, "g 42"),
            ("the greedy answer is wrong", 3, "g no"),
        )
    ],
    "ps_grpo": [
        Script(
            name,
            ps_grpo(2),
            PARAPHRASED,
            answers,
            is_right,
            {"paraphrases": PARAPHRASED.columns["paraphrases"], "size": 2},
        )
        for name, answers in (("some are right", some_right), ("none is", right_behind("?")))
    ],
}
