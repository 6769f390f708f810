"""Exchange of unfinished groups between ranks. Only the progress of a group in this step is sent.

Every rank already has each group as it was at the start of the step: the rank received the group in
an earlier step, or drew the group's task itself.
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

# fields of a reply that grow when it is continued; `parts` has pairs (weight version, token count)
GROWING_FIELDS = "tokens", "logp", "entropy", "parts"
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
        own_groups: The unfinished groups of this rank, by index.
        groups_at_start: All groups as they were when the step began.
        phase: The phase of the step, as for `Ranks.exchange`.
        channel: Name of the calling thread, as for `Ranks.exchange`.
    """
    if ranks.size == 1:
        return dict(own_groups)
    own_progress = {
        index: progress_since(groups_at_start[index], group) for index, group in own_groups.items()
    }
    known_media = (media for group in groups_at_start for media in media_of(group.task.prompt))
    progress_by_rank = exchange_json(ranks, own_progress, phase, channel, known_media)
    progress = {int(i): data for of_rank in progress_by_rank for i, data in of_rank.items()}
    return {i: with_progress(groups_at_start[i], progress[i]) for i in sorted(progress)}


def progress_since(before: GroupInProgress, now: GroupInProgress) -> list[Any]:
    """The replies, observations and scores that a group gained since `before`, as JSON data."""
    changed = {k: r for k, r in now.replies.items() if r != before.replies.get(k)}
    replies = {
        key: _continuation(before.replies.get(key, NO_REPLY), reply)
        for key, reply in changed.items()
    }
    observations = {k: v for k, v in now.observations.items() if k not in before.observations}
    scores = {k: v for k, v in now.scores.items() if k not in before.scores}
    return [replies, observations, scores_to_data(scores)]


def with_progress(before: GroupInProgress, data: Any) -> GroupInProgress:
    """Inverse of `progress_since`: add the progress to the earlier state of the group."""
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
    """The number of known items in each growing field, and the reply without these items."""
    known_lengths = {name: _known_length(before.reply, now.reply, name) for name in GROWING_FIELDS}
    new_items = {name: getattr(now.reply, name)[n:] for name, n in known_lengths.items()}
    return [known_lengths, *replace(now, reply=replace(now.reply, **new_items)).to_data()]


def _continue_reply(before: RecordedReply, data: Any) -> RecordedReply:
    """Inverse of `_continuation`: the whole reply."""
    known_lengths, *reply_data = data
    new_part = RecordedReply.from_data(reply_data)
    whole_fields: dict[str, Any] = {
        name: (*getattr(before.reply, name)[:length], *getattr(new_part.reply, name))
        for name, length in known_lengths.items()
    }
    return replace(new_part, reply=replace(new_part.reply, **whole_fields))


def _known_length(before: Reply, now: Reply, field: str) -> int:
    """Number of items of a field that need not be sent; 0 if the field has another beginning."""
    beginning = getattr(before, field)
    return len(beginning) if getattr(now, field)[: len(beginning)] == beginning else 0
