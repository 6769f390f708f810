"""Sessions of short videos, with watch time, likes and shares: the world of `tscac.py`.

The prompt `show cats food ? ` names the two topics that a user likes, and an answer is a session of
six videos such as `cats-film `. A video is of one of four topics and of one of six kinds, of which
the longest are hardly liked. A video of another topic is worth a quarter, one of the same topic as
the one before it a half, and one that was already shown nothing.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from grupo.core.types import Rollout, Task
from grupo.evidence.claims.tiny_lm import train_tiny_lm

TOPICS = ("cats", "food", "songs", "sport")
KINDS: Mapping[str, Mapping[str, float]] = {
    "film": {"watch": 9.0, "likes": 0.1, "shares": 0.1},
    "talk": {"watch": 6.0, "likes": 0.5, "shares": 0.4},
    "tour": {"watch": 5.0, "likes": 0.4, "shares": 0.6},
    "news": {"watch": 3.0, "likes": 0.5, "shares": 0.5},
    "joke": {"watch": 2.0, "likes": 0.9, "shares": 0.3},
    "clip": {"watch": 1.0, "likes": 0.2, "shares": 0.9},
}
MAIN, AUXILIARY = "watch", ("likes", "shares")
RESPONSES = (MAIN, *AUXILIARY)
LENGTH = 6  # videos of a session
OTHER_TOPIC, SAME_TOPIC = 0.25, 0.5  # worth of a video
LIKED_SHARE = 0.6  # of the logged videos have a liked topic, the others a random one
LOGGED = 40  # users with the same topics
UNIT: Mapping[str, float] = {"watch": 10.0, "likes": 1.0, "shares": 1.0}
VIDEOS = tuple(f"{topic}-{kind} " for topic in TOPICS for kind in KINDS)


def sessions() -> list[Task]:
    """A task for each ordered pair of topics that a user likes."""
    return [
        Task(prompt, prompt, columns={"topics": list(pair)})
        for pair in permutations(TOPICS, 2)
        for prompt in (f"show {' '.join(pair)} ? ",)
    ]


def responses(topics: Sequence[str], videos: Sequence[str]) -> dict[str, float]:
    """Watch time, likes and shares of a session, in units of `UNIT`.

    Args:
        topics: The topics that the user likes.
        videos: The videos, such as `cats-film`.

    >>> responses(["cats", "food"], ["cats-film", "cats-talk", "cats-film", "sport-talk", "?"])
    {'watch': 1.35, 'likes': 0.475, 'shares': 0.4}
    """
    found = dict.fromkeys(RESPONSES, 0.0)
    for place, video in enumerate(videos[:LENGTH]):
        topic, _, kind = video.partition("-")
        if kind not in KINDS or topic not in TOPICS or video in videos[:place]:
            continue
        worth = 1.0 if topic in topics else OTHER_TOPIC
        if place and videos[place - 1].partition("-")[0] == topic:
            worth *= SAME_TOPIC
        for name in RESPONSES:
            found[name] += worth * KINDS[kind][name] / UNIT[name]
    return found


def watch(task: Task, rollout: Rollout) -> float:
    """The watch time of a session."""
    return responses(task.columns["topics"], rollout.text.split())["watch"]


def likes(task: Task, rollout: Rollout) -> float:
    """The likes of a session."""
    return responses(task.columns["topics"], rollout.text.split())["likes"]


def shares(task: Task, rollout: Rollout) -> float:
    """The shares of a session."""
    return responses(task.columns["topics"], rollout.text.split())["shares"]


def logged(task: Task) -> list[str]:
    """Four sessions of the behaviour policy, which favours the topics that the user likes."""
    rng = random.Random(task.key)
    return [_session(task, rng) for _ in range(4)]


def _session(task: Task, rng: random.Random) -> str:
    topics, kinds = task.columns["topics"], list(KINDS)
    return "".join(
        f"{rng.choice(topics if rng.random() < LIKED_SHARE else TOPICS)}-{rng.choice(kinds)} "
        for _ in range(LENGTH)
    )


def save_model(folder: Path, steps: int = 100) -> Path:
    """Train a model of 50,000 parameters on logged sessions, and return its folder."""
    tasks = [replace(task, key=f"{task.key}{i}") for task in sessions() for i in range(LOGGED)]
    return train_tiny_lm(folder, tasks, logged, steps=steps, tags=VIDEOS)
