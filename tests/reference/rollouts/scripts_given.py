"""Scripts of the methods that train on given answers: solutions, demonstrations, pairs."""

from functools import partial

from grupo.core.types import Message
from grupo.methods.ahpo import ahpo
from grupo.methods.amft import amft
from grupo.methods.ampo import ampo
from grupo.methods.bco import bco
from grupo.methods.bradley_terry import bradley_terry
from grupo.methods.cdpo import cdpo
from grupo.methods.chord_mu import chord_mu
from grupo.methods.chord_phi import chord_phi
from grupo.methods.dft import dft
from grupo.methods.dpo import dpo
from grupo.methods.gepo import gepo
from grupo.methods.grao import grao
from grupo.methods.hinge import hinge
from grupo.methods.hpt import hpt
from grupo.methods.ipo import ipo
from grupo.methods.ln_dpo import ln_dpo
from grupo.methods.luffy import luffy
from grupo.methods.modpo import modpo
from grupo.methods.mpo import mpo
from grupo.methods.nca import nca
from grupo.methods.orpo import orpo
from grupo.methods.ovm import ovm
from grupo.methods.prm_lessons import prm_lessons
from grupo.methods.robust_dpo import robust_dpo
from grupo.methods.sft import sft
from grupo.methods.simpo import simpo
from grupo.methods.srft import srft
from grupo.methods.srpo_self_improving import srpo_self_improving
from grupo.rollouts.samplers.self_improving_pairs import RevisionPrompt
from tests.reference.rollouts.comparison import Script
from tests.reference.rollouts.scripted import Model
from tests.reference.rollouts.scripts_hints import is_right, right_behind
from tests.reference.rollouts_plain.record import Question

RIGHT = Question("Q", "42", {"solution": "so it is 42"})
WRONG = Question("Q", "42", {"solution": "so it is 43"})
NO_SOLUTION = Question("Q", "42", {"other": "x"})
SIZE = {"size": 3}

EXPERTS = {
    "ahpo": ahpo(3),
    "amft": amft(0.5, 3),
    "chord_mu": chord_mu(3),
    "chord_phi": chord_phi(3),
    "grao": grao(3),
    "hpt": hpt(3),
    "luffy": luffy(64, 3),
    "srft": srft(3),
}
PAIRS = {
    "bco": bco(),
    "bradley_terry": bradley_terry(),
    "cdpo": cdpo(),
    "dpo": dpo(),
    "gepo": gepo(),
    "hinge": hinge(),
    "ipo": ipo(),
    "ln_dpo": ln_dpo(),
    "mpo": mpo(),
    "nca": nca(),
    "orpo": orpo(),
    "robust_dpo": robust_dpo(),
    "simpo": simpo(),
}
PAIR = Question("Q", "", {"chosen": "good 42", "rejected": "bad"})
SWAPPED = Question("Q", "", {"chosen": "bad", "rejected": "good 42"})

TEACHERS = Question("Q", "7", {"a": "A: 7 ok", "b": "B: 7", "c": "C: 7 or 7", "d": "D: 8"})
COMPREHENSION = {"A: 7 ok": 0.2, "B: 7": 0.9, "C: 7 or 7": 0.5, "D: 8": 0.6}


def answer_logp(context: str, letter: str) -> float:
    """log of the answer's probability behind the reasoning of each solution."""
    behind = {"QA: ": -1.6094379, "QB: ": -0.1053605, "QC: 7 or ": -0.6931472, "QD: 8": -0.5108256}
    return behind.get(context, -1.0)


def message(role: str, content: str) -> Message:
    """A message of a chat."""
    return {"role": role, "content": content}


CHAT = [message("user", "Q1"), message("assistant", "A1")]
LONG_CHAT = [*CHAT, message("user", "Q2"), message("assistant", "A2")]


def no_call(context: str, n: int) -> str:
    """The texts of a policy that must not be asked."""
    raise AssertionError(f"a call with {context!r}")


given = partial(Script, answers=no_call, reward=is_right)

SCRIPTS = {
    name: [
        Script("the solution is right", method, RIGHT, right_behind("Q"), is_right, SIZE),
        Script("the solution is wrong", method, WRONG, right_behind("?"), is_right, SIZE),
        Script("no solution", method, NO_SOLUTION, right_behind("Q"), is_right, SIZE),
    ]
    for name, method in EXPERTS.items()
}
SCRIPTS |= {
    name: [given("a pair", method, PAIR), given("another pair", method, SWAPPED)]
    for name, method in PAIRS.items()
}
SCRIPTS |= {
    "ampo": [
        Script(
            name,
            ampo(64, size, columns=("a", "b", "c", "d"), num_solutions=count),
            question,
            answers,
            lambda text: float("7" in text),
            {
                "probabilities": COMPREHENSION,
                "columns": ("a", "b", "c", "d"),
                "size": size,
                "count": count,
            },
            model=Model(logp=answer_logp),
        )
        for name, size, count, question, answers in (
            ("one is right", 4, 2, TEACHERS, lambda context, n: "7" if n == 2 else "no"),
            ("all are wrong", 4, 2, TEACHERS, lambda context, n: f"no {n}"),
            ("three solutions", 6, 3, TEACHERS, lambda context, n: f"no {n}"),
            (
                "fewer solutions than places",
                4,
                2,
                Question("Q", "7", {"b": "B: 7"}),
                lambda context, n: f"no {n}",
            ),
        )
    ],
    "dft": [
        given("a solution", dft(), RIGHT),
        given("a wrong solution", dft(), WRONG),
    ],
    "sft": [
        given("two messages", sft(), Question("Q1", "", {"messages": CHAT})),
        given("four messages", sft(), Question("Q1", "", {"messages": LONG_CHAT})),
    ],
    "ovm": [
        given(f"label {label}", ovm(), Question("Q", "", {"completion": "42", "label": label}))
        for label in (True, False)
    ],
    "prm_lessons": [
        given(
            name,
            prm_lessons(separator="; ", judged=judged),
            Question("Q", "", {"completions": ["a", "bc"], "labels": labels, "judge": 2}),
            settings={"judged": judged, "separator": "; "},
        )
        for name, labels, judged in (
            ("no judge", [True, True], ""),
            ("the judge agrees", [True, False], "judge"),
            ("the judge names another step", [False, True], "judge"),
        )
    ],
    "modpo": [
        given(name, modpo((("margin", 0.5),)), q, terms=lambda text: {"margin": is_right(text)})
        for name, q in (("a pair", PAIR), ("another pair", SWAPPED))
    ],
    "srpo_self_improving": [
        given(name, srpo_self_improving(), q, settings={"revise": RevisionPrompt()})
        for name, q in (("a pair", PAIR), ("another pair", SWAPPED))
    ],
}
