"""Exchange of values, groups of rollouts and gradients between ranks."""

import json
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from grupo.core.media import Media, media_of
from grupo.core.types import Group, Task
from grupo.distributed.base import Channel, Ranks
from grupo.distributed.phase import Phase
from grupo.storage import media_files, rollout_json
from grupo.util.exit_codes import CommandError
from grupo.util.out_of_memory import is_out_of_memory
from grupo.util.sharded_tensors import is_sharded

Number = TypeVar("Number", int, float)

BUCKET_NUMBERS = 1 << 24  # gradients are summed in buckets of 64 MB in float32


def share_of_rank(ranks: Ranks, count: int) -> range:
    """The indices of the items that this rank works on, of `count` items.

    >>> from grupo.distributed.base import SingleRank
    >>> list(share_of_rank(SingleRank(), 3))
    [0, 1, 2]
    """
    return range(ranks.rank, count, ranks.size)


def exchange_json(
    ranks: Ranks,
    value: Any,
    phase: Phase,
    channel: Channel = "update",
    known_media: Iterable[Media] = (),
) -> list[Any]:
    """The JSON values of all ranks, by rank; floats keep their bits, and media stay objects.

    Args:
        ranks: The processes.
        value: The value of this rank.
        phase: As for `Ranks.exchange`.
        channel: As for `Ranks.exchange`.
        known_media: Images, videos and audio that all ranks have, of which only references are
            sent. The content of another one is sent once.
    """
    if ranks.size == 1:
        return [value]
    known = {media.digest: media for media in known_media}
    text = json.dumps(value, default=_MediaEncoder(set(known)))
    data = ranks.exchange(zlib.compress(text.encode(), 1), phase, channel)
    return [_parse(zlib.decompress(part), dict(known)) for part in data]


def collect_json(ranks: Ranks, value: Any, phase: Phase) -> list[Any]:
    """The JSON values of the other ranks, on the first rank; on the others nothing is decoded."""
    if ranks.size == 1:
        return []
    parts = ranks.exchange(zlib.compress(json.dumps(value).encode(), 1), phase)
    return [json.loads(zlib.decompress(part)) for part in parts[1:] if ranks.rank == 0]


class _MediaEncoder:
    """References to media, with the content of those that the other ranks have not received.

    Args:
        sent: Digests of the media that they have.
    """

    def __init__(self, sent: set[str]) -> None:
        self.sent = sent

    def __call__(self, value: object) -> dict[str, str]:
        if not isinstance(value, Media):
            raise TypeError(f"{type(value).__name__} is not JSON")
        encode = media_files.reference if value.digest in self.sent else media_files.inline
        self.sent.add(value.digest)
        return encode(value)


def _parse(text: bytes, known: dict[str, Media]) -> Any:
    """The value of a rank; `known` has media by digest, and receives those that were sent."""

    def restore(value: dict[str, Any]) -> Any:
        if not media_files.is_reference(value):
            return value
        digest = value["digest"]
        if digest not in known:
            known[digest] = media_files.restored(value, lambda reference: b"")
        return known[digest]

    return json.loads(text, object_hook=restore)


def broadcast_from_rank_0(ranks: Ranks, value: Any, phase: Phase) -> Any:
    """The JSON value of rank 0, such as a time, by which all ranks decide alike."""
    return exchange_json(ranks, value if ranks.rank == 0 else None, phase)[0]


def any_rank(ranks: Ranks, flag: bool, phase: Phase) -> bool:
    """Whether the flag of some rank is set."""
    return any(exchange_json(ranks, flag, phase))


class OutOfMemoryOnARankError(MemoryError):
    """Another rank ran out of memory: all ranks repeat the work in smaller micro-batches."""


@contextmanager
def raise_out_of_memory_on_all_ranks(ranks: Ranks) -> Generator[None]:
    """Raise an out-of-memory error on all ranks, at the end of this block, if one rank has one."""
    error: BaseException | None = None
    try:
        yield
    except (MemoryError, RuntimeError) as raised:
        if ranks.size == 1 or not is_out_of_memory(raised):
            raise
        error = raised
    if any_rank(ranks, error is not None, Phase.MEMORY_SUFFICED):
        raise OutOfMemoryOnARankError from error


class ShardedOutOfMemoryError(CommandError):
    """A rank of a sharded policy ran out of memory, while the others wait for its weights."""


@contextmanager
def report_sharded_out_of_memory(ranks: Ranks) -> Generator[None]:
    """Raise `ShardedOutOfMemoryError` if this rank runs out of memory in this block.

    The ranks gather each other's weights in this block. A rank that lacks memory cannot repeat the
    block alone, and the other ranks wait for its weights.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ShardedOutOfMemoryError(
            f"Rank {ranks.rank} ran out of memory. With sharded weights micro-batches cannot become"
            " smaller by themselves: train with a smaller policy.tokens_per_microbatch or with"
            " policy.gradient_checkpointing=True."
        ) from error


@contextmanager
def convert_to_rank_lost_error(ranks: Ranks) -> Generator[None]:
    """Raise `RankLostError`, which names the rank, if torch cannot reach a rank in this block.

    Before a collective of sharded weights, the ranks exchange nothing, and torch's error does not
    name the rank.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.distributed.DistError) or "gloo" in str(error):
            ranks.exchange(b"", Phase.WEIGHTS_GATHERED)  # raises `RankLostError`
        raise


def exchange_groups(
    ranks: Ranks, own: Mapping[int, Group], tasks: Sequence[Task], phase: Phase, channel: Channel
) -> list[Group]:
    """The groups of all ranks, in the order of their tasks.

    Args:
        ranks: The processes.
        own: The groups of this rank, by the index of their task.
        tasks: The tasks of all groups.
        phase: As for `Ranks.exchange`.
        channel: As for `Ranks.exchange`.
    """
    data = {
        index: [
            group.task.group_size,
            group.task.prompt,
            *map(rollout_json.to_data, group.rollouts),
        ]
        for index, group in (own.items() if ranks.size > 1 else ())
    }
    groups = dict(own)
    known = (media for task in tasks for media in media_of(task.prompt))
    for rank, entries in enumerate(exchange_json(ranks, data, phase, channel, known)):
        if rank != ranks.rank:
            for index, entry in entries.items():
                groups[int(index)] = _group(tasks[int(index)], *entry)
    return [groups[index] for index in range(len(tasks))]


def _group(task: Task, group_size: int, prompt: Any, *rollouts: Any) -> Group:
    prompt = rollout_json.as_observation(prompt)
    task = replace(task, group_size=group_size, prompt=prompt)
    return Group(task, tuple(map(rollout_json.from_data, rollouts)))


def sum_counts(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """The sum of counts by name, in the order of the parts.

    >>> sum_counts([{"a": 1}, {"b": 2, "a": 3}])
    {'a': 4, 'b': 2}
    """
    total: dict[str, Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


@torch.no_grad()
def sum_gradients(ranks: Ranks, parameters: Sequence[Tensor], phase: Phase) -> None:
    """Add the gradients of all ranks; a rank without a gradient of a parameter adds 0.

    Parameters without gradient on every rank stay without.
    """
    parameters = [p for p in parameters if not is_sharded(p)]  # summed in the backward pass
    if ranks.size == 1 or not parameters:
        return
    flags = exchange_json(ranks, [p.grad is not None for p in parameters], phase)
    used = [p for p, *has_gradient in zip(parameters, *flags, strict=True) if any(has_gradient)]
    for p in used:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    for bucket in _buckets([p.grad for p in used if p.grad is not None]):
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        ranks.sum([flat], phase)
        parts = flat.split([gradient.numel() for gradient in bucket])
        for gradient, part in zip(bucket, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


def _buckets(tensors: Sequence[Tensor]) -> Iterable[list[Tensor]]:
    """Consecutive tensors of one dtype and device, of up to `BUCKET_NUMBERS` numbers together."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        same = not bucket or (bucket[0].dtype, bucket[0].device) == (tensor.dtype, tensor.device)
        if not same or sum(t.numel() for t in bucket) + tensor.numel() > BUCKET_NUMBERS:
            if bucket:
                yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
