"""Scripts of the methods that revise, continue or replay answers."""

from collections.abc import Sequence

from grupo.core.types import Response, Rollout
from grupo.methods.critique_grpo import critique_grpo
from grupo.methods.pdr import pdr
from grupo.methods.r3 import r3
from grupo.methods.rgr_grpo import rgr_grpo
from grupo.methods.thinktuning import thinktuning
from grupo.methods.vl_rethinker import vl_rethinker
from grupo.rollouts.samplers import SummaryOfDrafts, TeacherFeedback
from grupo.rollouts.samplers.refinement import REFINE
from grupo.rollouts.samplers.reflection import PREFIX_TEXT, RETRY_INSTRUCTION
from tests.reference.rollouts.comparison import Script, Settings
from tests.reference.rollouts.scripts_hints import is_right, right_behind
from tests.reference.rollouts_plain.record import Answers, Question, Trained
from tests.reference.rollouts_plain.refinement import IF_RIGHT, IF_WRONG, TRIGGERS, Rethinking

Q = Question("Q", "42")


def _critique(q: str, answer: str, correct: bool, reference_answer: str) -> str:
    verdict = "right" if correct else "wrong"
    return (
        f"{q}\n\nYour answer: {answer}\n\nThis is {verdict}. The right answer is"
        f" {reference_answer}.\n\nAnswer again."
    )


CRITIQUE = {"critique": _critique, "size": 4}

ITEMS = {"sum": ("7", 3.0), "unit": ("m", 1.0), "way": ("+", 1.0)}
RUBRIC = Question(
    "Q", "", {"rubric": [{"name": name, "criterion": text} for name, (text, _) in ITEMS.items()]}
)


def rubric_terms(text: str) -> dict[str, float]:
    """Whether each item is met."""
    return {f"rubric/{name}": float(mark in text) for name, (mark, _) in ITEMS.items()}


def rubric_reward(text: str) -> float:
    """The weight of the items that are met, over all."""
    return sum(weight for mark, weight in ITEMS.values() if mark in text) / 5


def _revise(q: str, answer: str) -> str:
    lacking = [mark for mark, _ in ITEMS.values() if mark not in answer]
    return q + REFINE.format(answer=answer, items="\n".join(lacking))


def drafts_of(plain: Sequence[str], revision: str) -> Answers:
    """These plain answers in turn, and one revision."""
    return lambda context, n: plain[n] if context == "Q" else revision


REFLECT = {"reflect": lambda q, failure: q + PREFIX_TEXT + failure + RETRY_INSTRUCTION, "size": 3}


def remembered(*pairs: tuple[str, float]) -> tuple[Rollout, ...]:
    """Earlier rollouts of the task, with their rewards."""
    return tuple(
        Rollout((("Q", Response(tuple(text), (-1.0,) * len(text), text=text)),), reward)
        for text, reward in pairs
    )


PDR_WORDING = {
    "summarise": lambda q, drafts: q + SummaryOfDrafts().request.format(drafts="\n".join(drafts)),
    "refine": lambda q, text: f"{q}\n\nNotes of earlier drafts:\n{text}\n\nAnswer.",
    "size": 3,
    "drafts": 2,
    "limit": 5,
}


def pdr_answers(context: str, n: int) -> str:
    """Drafts, a long summary, and an answer that is right behind the summary's beginning."""
    if "Summarise" in context:
        return "summary of all"
    return f"{n}: 42" if "summa" in context else f"draft {n}"


def _has_workspace(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    return {"has_workspace": any("Summarise" in call for call in calls)}


def _thoughts(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    """The draws of each rollout, from the contexts that were continued."""
    draws = [Rethinking(False)] * len(RETHOUGHT)
    for call in calls:
        start = call.removeprefix("Q")
        trigger = next((t for t in (IF_RIGHT, IF_WRONG, *TRIGGERS[::-1]) if start.endswith(t)), "")
        if trigger:
            kept = start.removesuffix(trigger)
            i = next(i for i, text in enumerate(RETHOUGHT) if text[0] == kept[0])
            draws[i] = Rethinking(True, kept != RETHOUGHT[i], trigger)
    return {"draws": draws}


RETHOUGHT = (
    "a\n\nfirst Wait, then Wait\n\n\\boxed{no}",
    "b\n\nlong way\n\n\\boxed{42}42",
    "c no marks",
    "d no Wait at all\n\nno",
    "e is right 42",
    "f \\boxed{1} and \\boxed{2}\n\nno",
)
MORE = " so that after some more words of thought it is"  # 46 letters


def rethinking(ending: str, first: Sequence[str] = RETHOUGHT) -> Answers:
    """The first answers, and continuations with an ending."""
    return lambda context, n: first[n] if context == "Q" else ending


def _taught(calls: Sequence[str], rows: Sequence[Trained]) -> Settings:
    """The answers that the teacher has read."""
    read = [int(call.split("student: ")[1][0]) for call in calls if "student: " in call]
    return {"chosen": sorted(read)}


def taught(context: str, n: int) -> str:
    """Numbered answers, and the teacher's feedback."""
    return " Check: it is 42" if "student: " in context else f"{n} no"


TEACHER = {
    "feedback": lambda q, answer: q + TeacherFeedback().request.format(answer=answer),
    "size": 6,
}

SCRIPTS = {
    "critique_grpo": [
        Script(name, critique_grpo(64, 4), Q, answers, is_right, CRITIQUE)
        for name, answers in (
            ("all first answers are right", right_behind("Q", (0, 1, 2, 3))),
            ("one critique helps", lambda c, n: f"{n}: 42" if "answer: 2: no" in c else f"{n}: no"),
            ("all critiques help", lambda c, n: f"{n}: 42" if "Your" in c else f"{n}: no"),
            ("no critique helps", right_behind("?")),
            ("a critique spoils the answers", lambda c, n: "no" if "Your" in c else f"{n}: 42"),
        )
    ],
    "rgr_grpo": [
        Script(
            name,
            rgr_grpo(3),
            RUBRIC,
            drafts_of(plain, revision),
            rubric_reward,
            {"revise": _revise, "size": 3},
            terms=rubric_terms,
        )
        for name, plain, revision in (
            ("one meets all", ("7 m +", "7", ""), "7 m +"),
            ("the revision is best", ("m", "7", "x"), "7 m +"),
            ("the revision is better than the worst", ("7", "x", "m +"), "m"),
            ("the revision is as bad as the worst", ("7", "x", "m +"), "y"),
            ("two are best", ("7", "7 ", "m"), "7 m"),
        )
    ],
    "r3": [
        Script(
            name,
            r3(4, 3),
            Q,
            right_behind("Q"),
            is_right,
            {**REFLECT, "remembered": pairs},
            task={"replays": remembered(*pairs)},
        )
        for name, pairs in (
            ("nothing is remembered", ()),
            ("a failure is remembered", (("no", 0.0),)),
            ("a success is remembered", (("42", 1.0), ("no", 0.0))),
            ("failures prevail", (("no", 0.0), ("part", 0.4))),
            ("just enough success", (("no", 0.0), ("part", 0.5))),
        )
    ],
    "pdr": [
        Script(
            f"stream {key}",
            pdr(3, drafts=2, max_tokens=5),
            Q,
            pdr_answers,
            is_right,
            PDR_WORDING,
            _has_workspace,
            key=key,
        )
        for key in range(6)
    ],
    "vl_rethinker": [
        Script(
            f"{name}, stream {key}",
            vl_rethinker(6),
            Q,
            rethinking(ending),
            is_right,
            {"size": 6},
            _thoughts,
            limit=limit,
            key=key,
        )
        for key in range(4)
        for name, ending, limit in (
            ("right", f"{MORE} 42", 10_000),
            ("wrong", f"{MORE} 43", 10_000),
            ("right and short", " 42", 10_000),
            ("right and long", f"{MORE * 25} 42", 10_000),
            ("some answers are truncated", f"{MORE} 42", 24),
        )
    ],
    "thinktuning": [
        Script(
            name,
            thinktuning(6, share, share),
            Q,
            taught,
            is_right,
            TEACHER,
            _taught,
            limit=limit,
            calls_in_order=False,
            key=1,
        )
        for name, share, limit in (
            ("no feedback", 0.0, 10_000),
            ("some feedback", 0.5, 10_000),
            ("truncated answers", 0.5, 4),
        )
    ],
}
