"""Supervised examples of transcriptions, for toy vision-language models."""

import re
from collections.abc import Sequence
from random import Random

from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.tasks.document_crops import (
    BAR_LEFTS,
    BAR_TOPS,
    REQUESTS,
    chart_svg,
    draw_crop,
    table_html,
)
from grupo.tasks.scenes import IMAGE_SIZE
from grupo.toy.picture_examples import PictureExample

VALUES_REQUEST = "List the values."


def values_of(transcription: str) -> str:
    """The letters, digits or upper edges of bars in a transcription, from left to right.

    >>> values_of("ACE"), values_of("<table><tr><td>1<td>2<tr><td>3<td>4</table>")
    ('A C E', '1 2 3 4')
    >>> values_of('<svg><path d="M12 31V1H20V31M2 31V16H10V31"/></svg>')
    '16 1'
    """
    if bars := re.findall(r"M(\d+) \d+V(\d+)", transcription):
        return " ".join(top for _, top in sorted(bars, key=lambda bar: int(bar[0])))
    digits = re.findall(r"\d", transcription)
    return " ".join(digits or transcription)


@component
class DocumentExamples:
    """Pictures of `DocumentCrops` with their transcriptions, each domain as often.

    Args:
        domains: The domains.
        values_frac: Fraction of the examples that request the values alone: letters, digits, or
            the upper edges of bars. They teach the tower to see.
    """

    domains: tuple[str, ...] = ("text", "formula", "table", "chart")
    values_frac: Probability = 0.0

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        charts = [chart_svg(dict.fromkeys(BAR_LEFTS, top)) for top in BAR_TOPS]
        others = (VALUES_REQUEST, table_html([["1", "2"]] * 2), r"\frac{1}{2}")
        return [*REQUESTS.values(), *charts, *others]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with the request for its transcription."""
        domain = rng.choice(self.domains)
        answer, pixels = draw_crop(domain, rng)
        if rng.random() < self.values_frac:
            return PictureExample((pixels,), VALUES_REQUEST, values_of(answer))
        return PictureExample((pixels,), REQUESTS[domain], answer)
