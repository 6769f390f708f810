"""Ranks exchange what unfinished groups have received since the last step, and nothing else."""

from dataclasses import replace

import pytest

from grupo.core.types import RewardResult, Task
from grupo.distributed.base import Channel, Ranks
from grupo.distributed.phase import Phase
from grupo.inference.base import Reply
from grupo.inference.reply_record import RecordedReply
from grupo.testing.thread_ranks import run_ranks
from grupo.training.collect.unfinished_exchange import (
    exchange_unfinished_groups,
    progress_since,
    with_progress,
)
from grupo.training.collect.unfinished_groups import GroupInProgress

TOKENS = 100  # that a reply receives in a step
PHASE = Phase.UNFINISHED_GROUPS_EXCHANGED


def reply(num_tokens: int, *, is_complete: bool = False) -> RecordedReply:
    """A reply of some tokens, with one version of the weights for each step."""
    tokens = tuple(range(1000, 1000 + num_tokens))
    logp = tuple(-1.0 / (token + 0.1) for token in tokens)
    parts = tuple((step, TOKENS) for step in range(num_tokens // TOKENS))
    return RecordedReply(Reply(tokens, logp, "length", parts=parts), is_complete)


def group(key: str, num_tokens: int) -> GroupInProgress:
    """A group with an ended reply, its observation and score, and one that goes on."""
    replies = {"ended": reply(70, is_complete=True), "open": reply(num_tokens)}
    scores = {"ended": [RewardResult(0.1, {"part": 0.1}, {"reward": (0.0, 0.1)})]}
    observations = {"ended": None, "first": "a text", "chat": ({"role": "user", "content": "?"},)}
    return GroupInProgress(Task(key, "2 + 2 ="), 3, (0, 1), replies, observations, scores)


NEW = GroupInProgress(Task("a", "2 + 2 ="), 3, (0, 1))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (NEW, group("a", 100)),
        (group("a", 100), group("a", 200)),
        (group("a", 100), group("a", 100)),
        (NEW, NEW),
        # another beginning than the known one
        (group("a", 100), replace(NEW, replies={**group("a", 100).replies, "open": reply(3)})),
    ],
)
def test_a_group_is_what_was_known_and_what_it_has_received(before, now):
    progress = progress_since(before, now)
    expected = replace(
        now,
        observations={**before.observations, **now.observations},
        scores={**before.scores, **now.scores},
    )
    assert with_progress(before, progress) == expected


def exchanged_bytes(num_ranks: int, num_steps: int) -> tuple[list[int], list[dict]]:
    """Bytes that each step exchanges, and the groups of each step by rank 0."""

    def run(ranks: Ranks) -> tuple[list[int], list[dict]]:
        counts, steps = [], []
        exchange = ranks.exchange

        def counted(data: bytes, phase: str, channel: Channel = "update") -> list[bytes]:
            parts = exchange(data, phase, channel)
            counts.append(sum(map(len, parts)))
            return parts

        ranks.exchange = counted
        begun = [replace(group(key, 0), replies={}) for key in "abcd"]
        for step in range(1, num_steps + 1):
            own = {
                i: group(begun[i].task.key, TOKENS * step)
                for i in range(ranks.rank, len(begun), ranks.size)
            }
            groups = exchange_unfinished_groups(ranks, own, begun, PHASE, "generate")
            steps.append(groups)
            begun = list(groups.values())
        return counts, steps

    counts, steps = zip(*run_ranks(num_ranks, run), strict=True)
    assert all(rank_steps == steps[0] for rank_steps in steps)
    return counts[0], steps[0]


@pytest.mark.parametrize("num_ranks", [2, 4])
def test_exchanged_bytes_do_not_grow_with_the_length_of_the_answers(num_ranks):
    counts, steps = exchanged_bytes(num_ranks, 20)
    assert len(counts) == 20
    assert max(counts[10:]) < 1.1 * min(counts[1:6])
    _, alone = exchanged_bytes(1, 20)
    assert steps == alone
    assert [*steps[-1]] == [0, 1, 2, 3]
    assert len(steps[-1][3].replies["open"].reply.tokens) == 20 * TOKENS
