"""The trainer and the mathematics know nothing of what is trained, or how a group came to be."""

import re
from pathlib import Path

import pytest

import grupo

HOME = Path(grupo.__file__).parent
FILES = (
    "trainer",
    "learner",
    "state",
    "update",
    "gather",
    "collate",
    "weights",
    "ratios",
    "groups",
)
KINDS = r"trees?|branch\w*|hint\w*|agents?|tools?|images?|pixels?|diffusion|latents?|denois\w*"
KNOWING = re.compile(rf"(?<![a-z])({KINDS})(?![a-z])", re.IGNORECASE)
TEACHER = "hinted"  # the name of a signal that losses may read


def known(text: str) -> list[str]:
    """Words of a text that say what it is for."""
    return [word for word in KNOWING.findall(text) if word != TEACHER]


@pytest.mark.parametrize(
    "file",
    [
        *(HOME / f"{name}.py" for name in FILES),
        *sorted((HOME / "credit").glob("*.py")),
        *sorted((HOME / "losses").glob("*.py")),
    ],
    ids=lambda file: file.name,
)
def test_no_line_knows_what_is_trained(file: Path):
    assert known(file.read_text()) == []


def test_words_that_tell_are_found():
    assert known("if policy.is_image: image_size, ImageEnv, a tree") == ["image", "image", "tree"]
