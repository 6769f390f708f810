"""Scripts of the methods that sample a group again with hints."""

from grupo.core.types import SolvedTask, Task
from grupo.methods.cog_rethinker import CORRECT, DECOMPOSE, cog_rethinker
from grupo.methods.expo_self_explanation import expo_self_explanation
from grupo.methods.ghpo import LEAD_IN, ghpo
from grupo.methods.guide_grpo import guide_grpo
from grupo.methods.hill import hill
from grupo.methods.policyrollout import policyrollout
from grupo.methods.sage_self_hint import sage_self_hint
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.methods.xrpo import xrpo
from grupo.rollouts.samplers.explanations import EXPLAIN
from grupo.rollouts.samplers.leveled_hints import LeveledHintPrompt
from grupo.rollouts.samplers.self_hint import HINT_TEMPLATE
from tests.reference.rollouts.comparison import Script
from tests.reference.rollouts_plain.record import Answers, Question


def is_right(text: str) -> float:
    """1 for a text that ends with the answer."""
    return float(text.endswith("42"))


def right_behind(mark: str, numbers: tuple[int, ...] = (2,)) -> Answers:
    """Right in these calls, if the context holds the mark; wrong otherwise."""
    return lambda context, n: f"{n}: 42" if mark in context and n in numbers else f"{n}: no"


SOLVED = (SolvedTask("P1 ", "A1"), SolvedTask("P2 ", "A2"), SolvedTask("P3 ", "A3"))
EXAMPLES = "P1 A1\n\nP2 A2\n\n"
SOLUTION = Question("Q", "42", {"solution": "abcdefghij"})  # quarters are not whole letters
TIERS = Question("Q", "42", {"hints": [["k1", "k2"], ["p1", "p2", "p3"], ["s1"]]})
MANY_TIERS = Question("Q", "42", {"hints": [[f"t{i}{k}" for k in range(5)] for i in range(3)]})


def sage_answers(needed: str, hints: dict[str, str], solution: str = "abc") -> Answers:
    """Writes the hint of each level; right behind the needed hint."""
    levels = {_sage_request(n, solution): hints[str(n)] for n in (1, 2, 3)}

    def answers(context: str, n: int) -> str:
        if context in levels:
            return levels[context]
        return f"{n}: 42" if context.endswith(needed) and n == 1 else f"{n}: no"

    return answers


def _sage_request(level: int, solution: str = "abc") -> str:
    task = Task("t", "Q", "42", columns={"solution": solution})
    return str(LeveledHintPrompt()(task, level))


SAGE = Question("Q", "42", {"solution": "abc"})
SAGE_WORDING = {"ask": _sage_request, "hinted": lambda q, hint: f"{q}\n\n{hint}", "size": 3}
SAGE_HINTS = {str(n): f"think <hint> H{n} </hint> so" for n in (1, 2, 3)}
HINTED = {"hinted": lambda q, hint: f"{q}\n\nHint: {hint}"}
SCAFFOLD = {"hinted": lambda q, texts: f"{q}\n\nHint: " + "\n".join(texts), "size": 3}
HILL = Question("Q", "42", {"solution": "abc"})


def _hill_request(prompt: str, attempt: str, solution: str) -> str:
    return HINT_TEMPLATE.format(task=prompt, attempt=attempt, solution=solution)


def hill_answers(hints: list[str], right: str = "") -> Answers:
    """All plain attempts are equal; the hints in turn; right once behind one hint."""
    request = _hill_request("Q", "no", "abc")

    def answers(context: str, n: int) -> str:
        if context == request:
            return hints[n]
        return "so 42" if right and context.endswith(right) and n == 1 else "no"

    return answers


HILL_WORDING = {
    "ask": _hill_request,
    "hinted": lambda q, hint: f"{q}\n\n{hint}",
    "size": 3,
    "hints": 4,
}
HILL_HINTS = ["<hint>H1</hint>", "no hint", "<hint>it is 42</hint>", "x <HINT> H4 </HINT> y"]


def cog_answers(decomposed: bool, corrected: bool) -> Answers:
    """Wrong behind the plain prompt; right once in a stage."""

    def answers(context: str, n: int) -> str:
        stage = corrected if "wrong:" in context else decomposed if DECOMPOSE in context else False
        return f"so {n} 42" if stage and n else "no"

    return answers


COG_WORDING = {
    "decompose": lambda q: EXAMPLES + q + DECOMPOSE,
    "correct": lambda q, attempt: EXAMPLES + q + CORRECT.replace("{attempt}", attempt),
    "size": 3,
}
EXPO_WORDING = {
    "ask": lambda q, answer: q + EXPLAIN.format(answer=answer),
    "recited": lambda text, answer: f"{text}\n\nThe answer is {answer}.",
    "size": 3,
}

GHPO = {"lead_in": LEAD_IN, "size": 3}
Q = Question("Q", "42")
RULES = Question("Q", "42", {"rules": "R1, R2"})
HINT = Question("Q", "42", {"hint": "H"})

SCRIPTS = {
    "ghpo": [
        Script("one is right", ghpo(3), SOLUTION, right_behind("Q"), is_right, GHPO),
        Script("a quarter helps", ghpo(3), SOLUTION, right_behind("ab"), is_right, GHPO),
        Script("half helps", ghpo(3), SOLUTION, right_behind("abcde"), is_right, GHPO),
        Script("three quarters help", ghpo(3), SOLUTION, right_behind("abcdefgh"), is_right, GHPO),
        Script("nothing helps", ghpo(3), SOLUTION, right_behind("?"), is_right, GHPO),
    ],
    "sage_self_hint": [
        Script(name, sage_self_hint(3), SAGE, sage_answers(needed, hints), is_right, SAGE_WORDING)
        for name, needed, hints in (
            ("one is right", "Q", SAGE_HINTS),
            ("the first level helps", "H1", SAGE_HINTS),
            ("the third level helps", "H3", SAGE_HINTS),
            ("no level helps", "?", SAGE_HINTS),
            ("the first hint is malformed", "H2", {**SAGE_HINTS, "1": "no hint"}),
            ("the last hint is empty", "?", {**SAGE_HINTS, "3": "<hint> </hint>"}),
            ("a hint holds the answer", "?", {**SAGE_HINTS, "2": "<hint>say 42 !</hint>"}),
        )
    ],
    "scaf_grpo": [
        Script(name, scaf_grpo(3), q, answers, is_right, {**SCAFFOLD, "progress": p}, progress=p)
        for name, q, answers, p in (
            ("one is right", TIERS, right_behind("Q"), 0.5),
            ("a late level helps", TIERS, right_behind("s1", (0,)), 0.5),
            ("two levels help", TIERS, right_behind("p2", (0,)), 0.5),
            ("no level helps", TIERS, right_behind("?"), 0.5),
            ("warm-up", TIERS, right_behind("s1", (0,)), 0.1),
            ("after the warm-up", TIERS, right_behind("s1", (0,)), 0.15),
            ("the twelfth level helps", MANY_TIERS, right_behind("t21", (0,)), 0.5),
            ("only a thirteenth would help", MANY_TIERS, right_behind("t22", (0,)), 0.5),
        )
    ],
    "guide_grpo": [
        Script(
            name, guide_grpo(3), HINT, answers, is_right, {**HINTED, "size": 3}, through_filter=True
        )
        for name, answers in (
            ("one is right", right_behind("Q")),
            ("all are right", right_behind("Q", (0, 1, 2))),
            ("the hint helps one", right_behind("Hint: H")),
            ("the hint helps all", right_behind("Hint: H", (0, 1, 2))),
            ("the hint does not help", right_behind("?")),
        )
    ],
    "policyrollout": [
        Script(
            name,
            policyrollout(3),
            RULES,
            answers,
            is_right,
            {"hinted": lambda q, rules: f"{q}\n\nRules: {rules}", "size": 3},
        )
        for name, answers in (
            ("one is right", right_behind("Q")),
            ("the rules help", right_behind("Rules")),
            ("all are wrong", right_behind("?")),
        )
    ],
    "cog_rethinker": [
        Script(
            name,
            cog_rethinker(3),
            Q,
            answers,
            is_right,
            COG_WORDING,
            task={"demonstrations": SOLVED},
        )
        for name, answers in (
            ("one is right", right_behind("Q", (2,))),
            ("decomposing helps", cog_answers(True, True)),
            ("correcting helps", cog_answers(False, True)),
            ("nothing helps", cog_answers(False, False)),
        )
    ],
    "xrpo": [
        Script(
            name,
            xrpo(3, examples=2),
            Q,
            answers,
            is_right,
            {"shown": lambda q: EXAMPLES + q, "size": 3},
            task={"demonstrations": SOLVED},
        )
        for name, answers in (
            ("one is right", right_behind("Q")),
            ("examples help", right_behind("A2")),
            ("examples do not help", right_behind("?")),
        )
    ],
    "expo_self_explanation": [
        Script(name, expo_self_explanation(3), Q, answers, is_right, EXPO_WORDING)
        for name, answers in (
            ("one is right", right_behind("Q")),
            ("all are wrong", right_behind("?")),
        )
    ],
    "hill": [
        Script(name, hill(3), HILL, answers, is_right, HILL_WORDING)
        for name, answers in (
            ("one is right", right_behind("Q", (1,))),
            ("two hints are rejected and one helps", hill_answers(HILL_HINTS, "H4")),
            ("no hint helps", hill_answers([f"<hint>H{n}</hint>" for n in range(4)])),
            ("all hints are rejected", hill_answers(["none"] * 4)),
            ("a hint has the short answer as a number", hill_answers(["<hint>42 x</hint>"] * 4)),
        )
    ]
    + [
        Script(
            "a hint has the long answer inside a word",
            hill(3),
            Question("Q", "seven", {"solution": "abc"}),
            hill_answers(["<hint>seventeen</hint>"] * 4),
            is_right,
            HILL_WORDING,
        )
    ],
}
