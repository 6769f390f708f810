"""Responses that are generated in parts and become one turn of the rollout."""

from dataclasses import replace

from grupo.core.types import Response


def joined(begun: Response, part: Response) -> Response:
    """The response `begun`, continued by `part`, which answered the observation ""."""
    return replace(
        begun,
        items=(*begun.items, *part.items),
        logp=(*begun.logp, *part.logp),
        text=begun.text + part.text,
        finish_reason=part.finish_reason,
    )
