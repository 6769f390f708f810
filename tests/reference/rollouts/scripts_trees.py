"""Scripts of the methods that share beginnings, and of those that value them."""

from collections.abc import Callable, Sequence
from math import exp, log

from grupo.methods.arpo_agentic import arpo_agentic
from grupo.methods.igpo import igpo
from grupo.methods.omegaprm import omegaprm
from grupo.methods.pta_grpo import pta_grpo
from grupo.methods.spo_segment import spo_segment
from grupo.methods.treepo import treepo
from grupo.rollouts.samplers import AfterText
from tests.reference.rollouts.comparison import Script, Settings
from tests.reference.rollouts.scripted import Model
from tests.reference.rollouts.scripts_hints import is_right
from tests.reference.rollouts_plain.record import Answers, Question, Trained

Q = Question("Q", "42")


def tool(text: str) -> str | None:
    """A result for a text that ends with a question mark; else the rollout is over."""
    return "[r]" if text.endswith("?") else None


def entropy_of(text: str) -> float:
    """By the first letter: low, as in a first turn, or high."""
    return {"l": 1.0, "f": 10.0, "h": 20.0}[text[0]]


def turns(texts: Callable[[int, int], str]) -> Answers:
    """Texts by the number of the turn and that of the call with the same context."""
    return lambda context, n: texts(context.count("[r]"), n)


ARPO = {"reply": tool, "entropy": entropy_of, "size": 6, "initial": 2}
ARPO_SCRIPTS = {
    "no tool is called": lambda turn, n: f"f{n}",
    "results lower entropy": lambda turn, n: f"f{n}?" if turn == 0 else f"l{n} 42",
    "a result raises entropy": lambda turn, n: f"f{n}?" if turn == 0 else f"h{n} 42",
    "two results raise entropy": lambda turn, n: (f"f{n}?", f"h{n}?", f"h{n} 42")[turn],
    "entropy falls, then rises": lambda turn, n: (f"f{n}?", f"l{n}?", f"h{n} 42")[turn],
    "the first turn is uncertain": lambda turn, n: f"h{n}?" if turn == 0 else f"f{n} 42",
    "one of two calls a tool": lambda turn, n: f"h{n}" if turn else f"f{n}" if n else "f0?",
}

SEGMENT = 4
THREE_PATHS, FOUR_PATHS = 0, 3  # keys of streams in which so many paths begin


def grown(*lengths: int) -> Answers:
    """Paths of letters that differ by the number of the call; their lengths by the first letter."""

    def answers(context: str, n: int) -> str:
        begun = context.removeprefix("Q")
        letter = begun[:1] or "abcdefgh"[n % 8]
        length = lengths["abcdefgh".index(letter) % len(lengths)]
        return (letter + str(n) * 40)[: max(1, length - len(begun))]

    return answers


def _first(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    """The number of first paths, which is drawn."""
    longer = [i for i, call in enumerate(calls) if call != "Q"]
    return {"first": min(longer, default=2)}


CAPITALS_ARE_UNLIKELY = Model(logp=lambda context, letter: log(0.5 if letter.isupper() else 0.99))
SPO = {"probability": lambda letter: 0.5 if letter.isupper() else 0.99, "size": 3}


def segmented(*texts: str) -> Answers:
    """Texts in turn; a continuation is right in every third call."""
    return lambda context, n: (
        texts[n % len(texts)] if context == "Q" and n < 3 else ("x42" if n % 3 == 0 else "no")
    )


def stepwise(*texts: str, repaired_up_to: int) -> Answers:
    """Texts of steps in turn; a beginning of few steps is continued rightly in every second call.

    Args:
        texts: The texts of the prompt's calls.
        repaired_up_to: Largest number of steps that a continuation repairs.
    """

    def answers(context: str, n: int) -> str:
        steps = context.count("|")
        if not steps:
            return texts[n % len(texts)]
        return "42" if steps <= repaired_up_to and n % 2 == 0 else f"z|{n}|y|no"

    return answers


STEPS = "a|b|c|d|e|f|g|no"  # eight steps

IGPO_ANSWER = "<answer>"


def belief_logp(context: str, letter: str) -> float:
    """log of a probability that grows with the results in the context."""
    return log(0.1 + 0.2 * context.count("[r]"))


def mean_belief(context: str) -> float:
    """The probability of the answer's letters behind a context."""
    return exp(belief_logp(context, "4"))


SCRIPTS = {
    "arpo_agentic": [
        Script(
            name,
            arpo_agentic(6, 2),
            Q,
            turns(texts),
            is_right,
            ARPO,
            reply=tool,
            model=Model(entropy=entropy_of),
            calls_in_order=False,
            rows_in_order=False,
        )
        for name, texts in ARPO_SCRIPTS.items()
    ],
    "pta_grpo": [
        Script(
            name,
            pta_grpo(2, 3),
            Q,
            lambda context, n: (
                f"c{n} 42"
                if "[r]" in context and n % 2
                else f"p{n}?"
                if "[r]" not in context
                else f"c{n}"
            ),
            reward,
            {"observation": "[r]", "plans": 2, "chains": 3},
            reply=tool,
        )
        for name, reward in (("some are right", is_right), ("all are", lambda text: 1.0))
    ],
    "spo_segment": [
        Script(
            name,
            spo_segment(3, 3, tokens_per_segment=2),
            Q,
            segmented(*texts),
            is_right,
            {**SPO, "completions": 3, "interval": 2},
            model=CAPITALS_ARE_UNLIKELY,
            calls_in_order=False,
        )
        for name, texts in (
            ("different beginnings", ("abCdEfG", "xYZ", "42")),
            ("equal beginnings", ("abCdEfG", "abCxYZW", "abC42")),
            ("the first letter is unlikely", ("Ab42", "Cd", "ef")),
            ("no letter is unlikely", ("ab", "cd", "ef")),
        )
    ],
    "omegaprm": [
        Script(
            name,
            omegaprm(group_size=3, completions=2, searches=searches, at=AfterText("|")),
            Q,
            stepwise(*texts, repaired_up_to=repaired),
            is_right,
            {"size": 3, "completions": 2, "searches": searches},
            calls_in_order=False,
        )
        for name, texts, repaired, searches in (
            ("the sixth step is wrong", (STEPS, "a|42", "42"), 5, 1),
            ("the first step is wrong", (STEPS, "a|42", "42"), 0, 1),
            ("wrong continuations are searched", (STEPS, "a|b|no", "42"), 4, 6),
            ("all are right", ("42", "a|42", "b|42"), 4, 6),
            ("all are wrong", ("no", "a|no", STEPS), 4, 6),
        )
    ],
    "igpo": [
        Script(
            name,
            igpo(3),
            Q,
            turns(texts),
            is_right,
            {
                "reply": tool,
                "belief": lambda context: mean_belief(context + IGPO_ANSWER),
                "size": 3,
            },
            reply=tool,
            model=Model(logp=belief_logp),
            calls_in_order=False,
        )
        for name, texts in (
            ("one turn", lambda turn, n: f"a{n} 42"),
            ("up to three turns", lambda turn, n: f"a{n}?" if turn + n < 2 else f"{n} 42"),
        )
    ],
    "treepo": [
        Script(
            name,
            treepo(leaves, SEGMENT, depth),
            Q,
            grown(*lengths),
            is_right,
            {
                "size": leaves,
                "segment": SEGMENT,
                "depth": depth,
                "restarts": lambda stopped: [""] * len(stopped),
            },
            read,
            calls_in_order=False,
            rows_in_order=False,
            key=key,
        )
        for name, leaves, depth, lengths, read, key in (
            ("all paths are deep", 16, 5, (40,), _first, FOUR_PATHS),
            ("some paths end early", 10, 3, (3, 40), _first, FOUR_PATHS),
            ("few paths reach the depth", 16, 2, (40,), _first, FOUR_PATHS),
            (
                "all paths end in the first segment",
                12,
                3,
                (3,),
                lambda *_: {"first": 4},
                FOUR_PATHS,
            ),
            ("a remainder", 16, 4, (40,), _first, THREE_PATHS),
        )
    ],
}
