"""Join the parts of a response that was generated part by part."""

from dataclasses import replace

from grupo.core.types import Response


def join_responses(begun: Response, part: Response) -> Response:
    """The response `begun` followed by `part`, which was generated as its continuation."""
    return replace(
        begun,
        items=(*begun.items, *part.items),
        logp=(*begun.logp, *part.logp),
        text=begun.text + part.text,
        finish_reason=part.finish_reason,
    )
