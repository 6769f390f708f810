"""Claim of Treasure Hunt: a tag selects a class that is 5 % of the data."""

from random import Random

import pytest

from grupo.core.types import Task
from grupo.rollouts.samplers import TaggedDemonstrations, without_tags
from tests.helpers.toy_claims import answers, sft, trained, untrained

WORDS = {"X": ("one", "two", "three"), "Y": ("red", "green", "blue")}
TAGS = ("<class=X>", "<class=Y>")


def class_of(text: str) -> str:
    """The class of an answer; "" for one that belongs to none."""
    answer = without_tags(text, ["class"]).strip()
    return next((name for name, words in WORDS.items() if answer in words), "")


def tasks(size: int) -> list[Task]:
    """95 % of class X, 5 % of class Y, behind the same prompt."""
    rng = Random(0)
    labels = ["Y" if i % 20 == 0 else "X" for i in range(size)]
    return [
        Task(str(i), "Say:", columns={"class": label, "solution": rng.choice(WORDS[label])})
        for i, label in enumerate(labels)
    ]


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """Share of class Y among 1,000 answers to each prompt."""
    folder = tmp_path_factory.mktemp("tags")
    model = untrained(folder / "model", [*WORDS["X"], *WORDS["Y"]], ["Say:", *TAGS])
    sampler = TaggedDemonstrations(("class",))
    policy = trained(model, folder / "run", tasks(2000), sft(sampler), prompts_per_step=100)
    prompts = ["Say:", "<class=Y>Say:", "<class=X>Say:"]
    labels = [class_of(text) for text in answers(policy, prompts, 1000)]
    assert labels.count("") < 0.02 * len(labels)
    return [labels[1000 * i :][:1000].count("Y") / 1000 for i in range(3)]


@pytest.mark.slow
def test_a_tag_selects_the_rare_class_and_without_tags_it_stays_rare(shares):
    without, tagged, other = shares
    assert tagged > 0.9
    assert 0.03 < without < 0.07
    assert other < 0.02
