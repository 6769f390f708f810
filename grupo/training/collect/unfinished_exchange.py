"""Exchange of unfinished groups between ranks: only what they have received in the last step.

Every rank has all groups as they were when the step began, because it received them in the steps
before, or drew their tasks itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.media import media_of
from grupo.distributed.base import Channel, Ranks
from grupo.distributed.exchange import exchange_json
from grupo.distributed.phase import Phase
from grupo.inference.base import Reply
from grupo.inference.reply_record import RecordedReply
from grupo.training.collect.unfinished_groups import (
    GroupInProgress,
    observations_from_data,
    scores_from_data,
    scores_to_data,
)

GROWING = "tokens", "logp", "entropy", "parts"  # fields of a reply that is continued
NO_REPLY = RecordedReply(Reply())


def exchange_unfinished_groups(
    ranks: Ranks,
    own_groups: Mapping[int, GroupInProgress],
    groups_at_start: Sequence[GroupInProgress],
    phase: Phase,
    channel: Channel,
) -> dict[int, GroupInProgress]:
    """The unfinished groups of all ranks, by their index, in ascending order.

    Args:
        ranks: The processes.
        own_groups: The unfinished groups of this rank.
        groups_at_start: All groups as they were when the step began.
        phase: As for `Ranks.exchange`.
        channel: As for `Ranks.exchange`.
    """
    if ranks.size == 1:
        return dict(own_groups)
    data = {
        index: received_since(groups_at_start[index], group) for index, group in own_groups.items()
    }
    known = (media for group in groups_at_start for media in media_of(group.task.prompt))
    parts = exchange_json(ranks, data, phase, channel, known)
    entries = {int(index): entry for part in parts for index, entry in part.items()}
    return {i: with_received(groups_at_start[i], entries[i]) for i in sorted(entries)}


def received_since(before: GroupInProgress, now: GroupInProgress) -> list[Any]:
    """Replies, observations and scores since an earlier state of a group, as JSON data."""
    changed = {k: r for k, r in now.replies.items() if r != before.replies.get(k)}
    replies = {
        key: _continuation(before.replies.get(key, NO_REPLY), reply)
        for key, reply in changed.items()
    }
    observations = {k: v for k, v in now.observations.items() if k not in before.observations}
    scores = {k: v for k, v in now.scores.items() if k not in before.scores}
    return [replies, observations, scores_to_data(scores)]


def with_received(before: GroupInProgress, data: Any) -> GroupInProgress:
    """The later state of a group, from that before and what `received_since` returned."""
    replies, observations, scores = data
    continued = {
        key: _continue_reply(before.replies.get(key, NO_REPLY), reply)
        for key, reply in replies.items()
    }
    return replace(
        before,
        replies={**before.replies, **continued},
        observations={**before.observations, **observations_from_data(observations)},
        scores={**before.scores, **scores_from_data(scores)},
    )


def _continuation(before: RecordedReply, now: RecordedReply) -> list[Any]:
    """A reply without the beginning that is known, and the length of that in each field."""
    known = {name: _known_length(before.reply, now.reply, name) for name in GROWING}
    rest = {name: getattr(now.reply, name)[length:] for name, length in known.items()}
    return [known, *replace(now, reply=replace(now.reply, **rest)).to_data()]


def _continue_reply(before: RecordedReply, data: Any) -> RecordedReply:
    """The reply whose `_continuation` is given."""
    known, *rest = data
    now = RecordedReply.from_data(rest)
    fields = {
        name: (*getattr(before.reply, name)[:length], *getattr(now.reply, name))
        for name, length in known.items()
    }
    return replace(now, reply=replace(now.reply, **fields))


def _known_length(before: Reply, now: Reply, field: str) -> int:
    beginning = getattr(before, field)
    return len(beginning) if getattr(now, field)[: len(beginning)] == beginning else 0
