"""Guards of reasoning-gym's verifiers, which pay for some answers made without the task.

The measure: over many tasks, one and the same uninformed answer may earn on average 0.1 more than
the share of tasks that it solves. A family above it has a guard here, or is refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from grupo.tasks.reasoning_gym import create_gym_dataset

Entry = Mapping[str, Any]  # a task as reasoning-gym describes it: question, answer and metadata
AnswerCheck = Callable[[str, Entry], bool]
Verifier = Callable[[str, Entry], float]

MIN_CHAR_LIMIT = 10_000  # characters that an answer may have at least, whatever the family
MAX_REFERENCE_LENGTHS = 4  # an answer may also be this many times as long as the reference answer
MIN_PARTIAL_CHAR_LIMIT = 1_000  # characters that an answer with partial credit may have at least
NEARLY_RIGHT = 0.999  # partial credit of this much is for a rounding error
REDUCED = 0.1  # factor of partial credit where an uninformed answer gets too much of it

SUM = r"(?:[0-9+\-/() ]|(?<!\*)\*(?!\*)){1,500}"
LIST = r"[0-9A-Z_'\", \[\]\n-]{1,4000}"
NUMBER_LIST = r"[0-9+\-.eE,'\" \[\]\n]*"
COMPLEX_NUMBER = r"[0-9+\-.eEijIJ() ]{1,100}"
FRACTION = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:/[1-9][0-9]*|[eE][+-]?[0-9]{1,2})?"
SINGLE_DIGITS = r"(?s:(?!.*\d\d).*)"
NUMBERS = r"[+-]?[0-9.]+(?:\s*,\s*[+-]?[0-9.]+)*"
FACTORS = r"\s*\d+(?:\s*×\s*\d+)*\s*"  # noqa: RUF001
HANOI_MOVES = r"(?:\s*Move disk \d{1,3} from Peg \d{1,3} to Peg \d{1,3})+\s*"


def any_answer(answer: str, entry: Entry) -> bool:
    """True for every answer."""
    return True


def matches(pattern: str) -> AnswerCheck:
    """The check that the whole answer matches a regular expression."""
    compiled = re.compile(pattern)
    return lambda answer, entry: compiled.fullmatch(answer) is not None


def is_reference_word(answer: str, entry: Entry) -> bool:
    """True for the reference answer in upper or lower case.

    >>> is_reference_word("true", {"answer": "True"}), is_reference_word("yes", {"answer": "True"})
    (True, False)
    """
    return answer.strip().lower() == entry["answer"].lower()


def is_reference_fraction(answer: str, entry: Entry) -> bool:
    """True for a decimal number or fraction that differs from the reference by at most 1e-4.

    Of a very small probability, 0 is no approximation.

    >>> [is_reference_fraction(text, {"answer": "0.25"}) for text in ("1/4", "0.2", "1e999999999")]
    [True, False, False]
    """
    text = answer.strip().replace(",", "")
    if not matches(f"(?=.{{1,60}}$){FRACTION}")(text, entry):
        return False
    value, reference = Fraction(text), Fraction(entry["answer"])
    return abs(value - reference) <= 1e-4 and (value == 0) == (reference == 0)


def is_reference_json(answer: str, entry: Entry) -> bool:
    """True if the text between the first and the last brace is the reference answer's value.

    >>> is_reference_json('It is {"b": 2.0}.', {"answer": '{"b": 2}'})
    True
    """
    between_braces = answer[answer.find("{") : answer.rfind("}") + 1]
    if answer.strip() == entry["answer"].strip():
        return True
    try:
        return json.loads(between_braces) == json.loads(entry["answer"])
    except (ValueError, RecursionError):
        return False


def is_24_from_the_numbers(answer: str, entry: Entry) -> bool:
    """True for a sum that uses each number of the task once and is 24; by countdown's verifier."""
    metadata = {"numbers": entry["metadata"]["numbers"], "target": 24}
    countdown = create_gym_dataset("countdown", ())
    return (
        matches(SUM)(answer, entry) and countdown.score_answer(answer, {"metadata": metadata}) == 1
    )


def uses_existing_pegs(answer: str, entry: Entry) -> bool:
    """True for moves between pegs of the task; the verifier prints moves between others."""
    pegs = map(int, re.findall(r"Peg (\d+)", answer))
    existing = range(1, entry["metadata"]["num_pegs"] + 1)
    return matches(HANOI_MOVES)(answer, entry) and all(peg in existing for peg in pegs)


def has_few_moves(answer: str, entry: Entry) -> bool:
    """True for at most 5 moves of rush hour per move of the shortest solution, of 1 to 9 squares.

    A car moves 4 squares at most, so this leaves room for solutions in steps of one square.

    >>> has_few_moves("A+2 B-1", {"metadata": {"min_moves": 1}})
    True
    """
    count = len(re.findall(r"[A-Z][+-]\d", answer))
    return matches(SINGLE_DIGITS)(answer, entry) and count <= 5 * entry["metadata"]["min_moves"]


@dataclass(frozen=True)
class Guard:
    """Limits of what a family's verifier may pay.

    Args:
        reason: What the verifier does without the guard.
        accepts: Answers for which this is False earn 0; the verifier does not see them.
        partial_credit: Factor of scores below `NEARLY_RIGHT`.
    """

    reason: str
    accepts: AnswerCheck = any_answer
    partial_credit: float = 1.0


NO_GUARD = Guard("")

RUNS_CODE = "The verifier passes the answer to `eval`."
CONTAINED = (
    "An answer that contains the right one earns partial credit: a list of all answers, the"
    " question, or for 1 the number 10."
)
NEAR = "A constant earns partial credit for being near to the right number."
SIMILAR = "The answer of another task earns partial credit for the places that agree."
COPIED = "A copy of what the question gives earns partial credit for the places that agree."
ENDLESS = "A move repeated 99999999999 times stops the process."

REDUCED_FAMILIES = {
    CONTAINED: (
        *("acre", "aiw", "binary_alternation", "course_schedule", "gcd", "isomorphic_strings"),
        *("largest_island", "letter_counting", "list_functions", "mahjong_puzzle"),
        *("maze", "number_sequence", "products", "ransom_note"),
        *("rotate_matrix", "rotten_oranges", "string_manipulation", "syllogism"),
    ),
    NEAR: ("rectangle_count", "time_intervals"),
    SIMILAR: ("boxnet", "figlet_font", "futoshiki", "game_of_life", "mini_sudoku", "sudoku"),
    COPIED: ("letter_jumble", "sentence_reordering", "spell_backward", "word_sorting"),
    "The claim that everybody is a knight earns 0.6.": ("knights_knaves",),
    "A matrix of zeros earns 0.1.": ("pool_matrix",),
}

GUARDS: Mapping[str, Guard] = {
    "binary_matrix": Guard(RUNS_CODE, matches(LIST)),
    "codeio": Guard(
        "The edit distance of a 9 kB answer to the reference answer takes 8 s.",
        is_reference_json,
    ),
    "coin_flip": Guard(
        "A number earns 1 if the right one begins with it, as 0.25 does with 0."
        " 1e999999999 stops the process.",
        is_reference_fraction,
    ),
    "complex_arithmetic": Guard("NaN earns 1.", matches(COMPLEX_NUMBER)),
    "countdown": Guard(RUNS_CODE, matches(SUM)),
    "game_of_life_halting": Guard("Every text but the empty one earns 1.", is_reference_word),
    "n_queens": Guard(RUNS_CODE, matches(LIST)),
    "number_sorting": Guard("A list of NaN of the right length earns 1.", matches(NUMBER_LIST)),
    "polynomial_equations": Guard(
        f"{NEAR} Items of a list that are no numbers do not count.", matches(NUMBERS), REDUCED
    ),
    "prime_factorization": Guard(
        "The verifier raises an error for all texts but factors.", matches(FACTORS)
    ),
    "puzzle24": Guard(
        "Any four numbers that make 24 earn 1, such as those of another task, and so does 24.9."
        f" {RUNS_CODE}",
        is_24_from_the_numbers,
    ),
    "rubiks_cube": Guard(ENDLESS, matches(SINGLE_DIGITS)),
    "rush_hour": Guard(
        "Moves that are blocked do not count, so that a long list of moves solves simple boards."
        f" {ENDLESS}",
        has_few_moves,
    ),
    "spiral_matrix": Guard(RUNS_CODE, matches(LIST)),
    "string_insertion": Guard(RUNS_CODE, matches(LIST)),
    "tower_of_hanoi": Guard(
        "The verifier prints moves between pegs that do not exist.", uses_existing_pegs
    ),
} | {
    family: Guard(reason, partial_credit=REDUCED)
    for reason, families in REDUCED_FAMILIES.items()
    for family in families
}

USE_MATH_EQUAL = (
    "its verifier runs the answer as Python code. Use MathEqual, which compares the answer with the"
    " task's reference answer."
)
REFUSED_FAMILIES: Mapping[str, str] = {
    "composite": (
        "its verifier calls those of other families without their guards. Use TaskMixture of those"
        " families."
    ),
    "intermediate_integration": USE_MATH_EQUAL,
    "polynomial_multiplication": USE_MATH_EQUAL,
    "propositional_logic": (
        "every conclusion that follows is right, so that the constant (P or Q) earns 0.8 on average"
        " and a copy of the premises 1."
    ),
    "simple_integration": USE_MATH_EQUAL,
}


def char_limit(entry: Entry) -> int:
    """The largest number of characters that an answer may have; longer ones earn 0."""
    return max(MIN_CHAR_LIMIT, MAX_REFERENCE_LENGTHS * len(entry["answer"] or ""))


def partial_credit_char_limit(entry: Entry) -> int:
    """The largest number of characters of an answer with partial credit.

    Several families pay up to 0.05 for any text; longer texts, which cost the most, get none.
    """
    return max(MIN_PARTIAL_CHAR_LIMIT, MAX_REFERENCE_LENGTHS * len(entry["answer"] or ""))
