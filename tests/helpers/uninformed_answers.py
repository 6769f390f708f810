"""Answers made without knowledge of a reasoning-gym task, and the test that one solves the task."""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from reasoning_gym.games.rush_hour import Board

Entry = Mapping[str, Any]

CONSTANTS = (
    *("", " ", "\n", "0", "1", "-1", "2", "10", "100", "0.5", "1/2", "0,0", "(0, 0)", "0 days"),
    *("NaN", "nan", "inf", "-inf", "1e400", "0x0", "0j", "nan+nanj", "1_000", "00:00", "12:00"),
    *("100 days, 12:00", "1/0", "٣٤", "²", "9" * 5000, "0" * 9000, "U99", "A+9"),
    *("yes", "no", "Yes", "No", "True", "False", "None", "null", "A", "B", "X", "banana"),
    *("I don't know", "Sunday", "Monday", "[]", "{}", "[[]]", "[NaN]", '{"a": 1}', '""', "()"),
    *("[0]*10", ":", "Thought process:", "\0", "\ud800", "\x1b[2J", "<object object at 0x7f>"),
    *("{" * 2000, "[" * 9000, "(" * 2000 + "A" + ")" * 2000, "¬" * 3000 + "A", "a" * 9000),
    *("lorem ipsum " * 850, "1 2 3 4 5 6 7 8 9\n" * 500, "e" * 30, "abcdefghijklmnopqrstuvwxyz"),
    *(" ".join(map(str, range(1001))), str(list(range(1001)))),
)
# a verifier that takes one of these for a number computes for ever and cannot be interrupted
FREEZING = ("1e999999999", "1E-999999999", "9**9**9**9", "A+99999999999", "R99999999999")

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# of a reference answer that consists of numbers, the task gives the shape away
NUMBERS_ONLY = re.compile(r"[\s\d.,\[\]()+\-/:]*")


def uninformed_answers(entries: Sequence[Entry], index: int) -> dict[str, str]:
    """Answers by labels that are the same for all tasks, so that a mean over tasks can be taken."""
    entry = entries[index]
    groups = {
        "constant": CONSTANTS,
        "of the question": _from_question(entry["question"]),
        "of other tasks": _from_others(entries, index),
        "of the shape": _of_the_shape(entry),
        "of the family": FAMILY_ANSWERS.get(entry["metadata"]["source_dataset"], _none)(entry),
    }
    return {
        f"{group} {i}: {text[:30]!r}" if group == "constant" else f"{group} {i}": text
        for group, texts in groups.items()
        for i, text in enumerate(texts)
    }


def _from_question(question: str) -> list[str]:
    paragraphs = re.split(r"\n\s*\n", question.strip())
    lines = question.strip().splitlines()
    numbers = " ".join(NUMBER.findall(question))
    copied = question.rpartition(":")[2].strip()
    longest = max(paragraphs, key=len)
    ends = [question[:100], question[-100:]]
    return [question, *ends, paragraphs[-1], longest, lines[0], lines[-1], numbers, copied]


def _from_others(entries: Sequence[Entry], index: int) -> list[str]:
    """Reference answers of other tasks, all of them together, and the most frequent one."""
    answers = [reference_answer(entry) for entry in entries]
    others = [answers[(index + distance) % len(answers)] for distance in (1, 2, 3)]
    options = sorted(set(answers[:index] + answers[index + 1 :]))[:50]
    joined = [separator.join(options) for separator in (" ", ", ", "\n")]
    modal = Counter(answers).most_common(1)[0][0]
    changed = [NUMBER.sub(number, others[0]) for number in ("0", "1", "NaN", "1e400")]
    return [*others, *joined, modal, f"The answer is {others[0]}.", *changed]


def _of_the_shape(entry: Entry) -> list[str]:
    answer = reference_answer(entry)
    if not NUMBERS_ONLY.fullmatch(answer):
        return []
    return [NUMBER.sub(number, answer) for number in ("NaN", "Infinity", "1e400", "0", "1")]


def _none(entry: Entry) -> list[str]:
    return []


def _everybody_is_a_knight(entry: Entry) -> list[str]:
    role = entry["metadata"]["knight_knave_terms"]["a_knight"]
    return [", and ".join(f"{name} is {role}" for name in entry["metadata"]["names"])]


def _given_words(entry: Entry) -> list[str]:
    return [", ".join(entry["metadata"]["original_words"])]


def _one_color(entry: Entry) -> list[str]:
    vertices = entry["metadata"]["puzzle"]["vertices"]
    return [json.dumps(dict.fromkeys(vertices, 1)), json.dumps({v: v % 3 + 1 for v in vertices})]


FAMILY_ANSWERS: Mapping[str, Callable[[Entry], list[str]]] = {
    "futoshiki": lambda entry: [re.sub(r"\d", "1", entry["answer"])],
    "graph_color": _one_color,
    "knights_knaves": _everybody_is_a_knight,
    "propositional_logic": lambda entry: [
        "(P \u2228 Q)",
        " \u2227 ".join(entry["metadata"]["premises"]),
    ],
    "word_sorting": _given_words,
}


def reference_answer(entry: Entry) -> str:
    """An answer that solves the task; most entries have it, some tasks are solved here."""
    solve = SOLVERS.get(entry["metadata"]["source_dataset"])
    return solve(entry) if solve else entry["answer"]


def _graph_colors(entry: Entry) -> str:
    return json.dumps(entry["metadata"]["possible_answer"])


def _boxnet_plan(entry: Entry) -> str:
    """Carry each box to the square of its target, first along the rows, then along the columns."""
    squares = {
        thing: tuple(map(float, name.split("_")))
        for name, things in entry["metadata"]["initial_state"].items()
        for thing in things
    }
    plan = []
    for box in (thing for thing in squares if thing.startswith("box_")):
        target = box.replace("box_", "target_")
        (row, column), (target_row, target_column) = squares[box], squares[target]
        while (row, column) != (target_row, target_column):
            square = f"{row}, {column}"
            if row != target_row:
                row += 1 if target_row > row else -1
            else:
                column += 1 if target_column > column else -1
            plan.append({f"Agent[{square}]": f"move({box}, square[{row}, {column}])"})
        plan.append({f"Agent[{row}, {column}]": f"move({box}, {target})"})
    return json.dumps(plan)


def _rush_hour_moves(entry: Entry) -> str:
    return _shortest_moves(entry["metadata"]["board_config"])


@cache
def _shortest_moves(start: str) -> str:
    """The solution of a rush-hour board in steps of one square, by breadth-first search."""
    cars = string.ascii_uppercase[: len(set(start) - {"o", "x"})]  # the names in the question
    steps = [f"{car}{sign}1" for car, sign in product(cars, "+-")]
    seen = set()
    queue = [""]
    for moves in queue:
        board = Board(start)
        board.perform_moves(moves)
        if board.solved:
            return moves
        if str(board) not in seen:
            seen.add(str(board))
            queue += [f"{moves} {step}" for step in steps]
    raise ValueError(f"{start} cannot be solved")


SOLVERS: Mapping[str, Callable[[Entry], str]] = {
    "boxnet": _boxnet_plan,
    "graph_color": _graph_colors,
    "propositional_logic": lambda entry: entry["metadata"]["example_answer"],
    "rubiks_cube": lambda entry: entry["metadata"]["example_correct_answer"],
    "rush_hour": _rush_hour_moves,
}


def solves(answer: str, entry: Entry) -> bool:
    """True if the answer is the reference answer, written differently at most, or as good as it."""
    also_right = ALSO_RIGHT.get(entry["metadata"]["source_dataset"], lambda *_: False)
    return _plain(answer) == _plain(reference_answer(entry)) or also_right(answer, entry)


def _plain(answer: str) -> str:
    """The bare text in lower case, with single spaces; numbers as floats."""
    bare = answer.lower().strip(" .").removeprefix("the answer is ")
    text = " ".join(bare.replace(",", " ").split())
    return NUMBER.sub(lambda number: str(float(number[0])), text)


def _is_coloring(answer: str, entry: Entry) -> bool:
    puzzle = entry["metadata"]["puzzle"]
    try:
        colors = {int(vertex): color for vertex, color in json.loads(answer).items()}
        chosen = {colors[vertex] for vertex in puzzle["vertices"]}
        differ = all(colors[a] != colors[b] for a, b in puzzle["edges"])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return False
    return differ and chosen <= set(puzzle["color_options"])


ALSO_RIGHT: Mapping[str, Callable[[str, Entry], bool]] = {
    "graph_color": _is_coloring,
    "n_queens": lambda answer, entry: answer in entry["metadata"]["valid_answers"],
}
