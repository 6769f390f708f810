r"""Published cheats of graders: what they attack, where they were reported, and an honest answer.

A cheat is a text that earned a reward from some grader without being the answer. Sources are papers
(arXiv numbers) and issues or pull requests (repository#number) that report the kind of cheat; the
texts are adapted to the tasks here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from grupo.rewards import (
    AfterMarker,
    AfterThinking,
    ExactMatch,
    FunctionReward,
    InsideTag,
    MathEqual,
    RegexAnswer,
    TagFormat,
    last_boxed,
)
from grupo.rewards.similarity import chart_match, same_word
from tests.helpers import comparison_cheats, extraction_cheats


def _by(similarity):
    """A reward that applies `similarity(answer, truth)` to the text in the answer tag."""
    extract = InsideTag("answer")

    def score(task, rollout):
        answer = extract(rollout.text)
        return 0.0 if answer is None else similarity(answer, task.reference_answer)

    return FunctionReward(score)


def verl_marker(data_source, solution_str, ground_truth):
    """A reward function of verl that compares the text after the marker."""
    return float(AfterMarker("####")(solution_str) == ground_truth)


def trl_boxed(completions, answer):
    """A reward function of TRL that compares the last boxed text."""
    return [
        float(last_boxed(text) == truth) for text, truth in zip(completions, answer, strict=True)
    ]


GRADERS = {
    "math": MathEqual(),
    "math within 0.5 s": MathEqual(time_limit=0.5),
    "math in box": MathEqual(AfterThinking(last_boxed)),
    "math in tag": MathEqual(AfterThinking(InsideTag("answer"))),
    "math after ####": MathEqual(AfterMarker("####")),
    "text": ExactMatch(),
    "text after ####": ExactMatch(AfterMarker("####")),
    "text in tag": ExactMatch(AfterThinking(InsideTag("answer"))),
    "pattern": RegexAnswer(r"answer is (-?\d+)\b"),
    "option": _by(same_word),
    "chart": _by(chart_match),
    "format": TagFormat(),
    "verl function": verl_marker,
    "trl function": trl_boxed,
}


@dataclass(frozen=True)
class Cheat:
    """A text that is no right answer, and an honest answer to the same task.

    Args:
        source: Where the cheat was published.
        grader: Key of `GRADERS`.
        reference_answer: The task's reference answer.
        honest: An answer that earns 1.
        text: The cheat; earns 0.
    """

    source: str
    grader: str
    reference_answer: str
    honest: str
    text: str


def cheats() -> Iterator[Cheat]:
    """All cheats of the tables."""
    for source, grader, reference_answer, honest, texts in (
        *extraction_cheats.TABLE,
        *comparison_cheats.TABLE,
    ):
        for text in texts:
            yield Cheat(source, grader, reference_answer, honest, text)


CHEATS = tuple(cheats())
