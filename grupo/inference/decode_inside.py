"""Replies of an engine to requests that act inside the model."""

from grupo.core.decoding import LockStep
from grupo.inference.base import Reply, Request
from grupo.inference.entropy_steering import decode_steered
from grupo.inference.lock_step import decode_in_lock_step
from grupo.inference.read_prompt import PromptReader


def decode_inside(reader: PromptReader, request: Request) -> Reply:
    """The reply to a request with a `decoding`, whose context has room for a token."""
    assert request.decoding, "others are answered in batches"
    if isinstance(request.decoding, LockStep):
        return decode_in_lock_step(reader, request, request.decoding)
    return decode_steered(reader, request, request.decoding)
