"""Supervised examples of transcriptions, for toy vision-language models."""

from collections.abc import Sequence
from random import Random

from grupo.core.component import component
from grupo.tasks.document_crops import (
    BAR_TOPS,
    DRAWERS,
    REQUESTS,
    chart_svg,
    draw_crop,
    table_html,
)
from grupo.tasks.scenes import IMAGE_SIZE
from grupo.toy.picture_examples import PictureExample


@component
class DocumentExamples:
    """Pictures of `DocumentCrops` with their transcriptions, each domain as often."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        charts = [chart_svg([top] * 3) for top in BAR_TOPS]
        return [*REQUESTS.values(), *charts, table_html([["1", "2"]] * 2), r"\frac{1}{2}"]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with the request for its transcription."""
        domain = rng.choice([*DRAWERS])
        answer, pixels = draw_crop(domain, rng)
        return PictureExample((pixels,), REQUESTS[domain], answer)
