"""Loading of processors, also of those with a video processor where torchvision is missing."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoProcessor, ImageProcessingMixin, processing_utils
from transformers.utils.hub import cached_file
from transformers.utils.import_utils import is_torchvision_available

from grupo.core.errors import ConfigError
from grupo.models.loading import LOAD_ERRORS, first_line

VIDEO = "video_processor"
PROCESSOR_FILE = "processor_config.json"
VIDEO_FILE = "video_preprocessor_config.json"  # of models from before processors had one file


class MissingVideoProcessor(ImageProcessingMixin):
    """Stands for the video processor, which needs torchvision: frames are read as images."""

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> "MissingVideoProcessor":
        """The processor, whatever the model."""
        return cls()


@contextmanager
def without_video_processors() -> Iterator[None]:
    """Context manager in which processors load without torchvision, and cannot read videos."""
    if is_torchvision_available():
        yield
        return
    classes: Any = processing_utils.MODALITY_TO_BASE_CLASS_MAPPING
    loaders: Any = processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING
    video_class = classes[VIDEO]
    classes[VIDEO] = "ImageProcessingMixin"
    processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING = _Loaders(loaders)  # pyright: ignore
    try:
        yield
    finally:
        classes[VIDEO] = video_class
        processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING = loaders


class _Loaders:
    """The classes that load the parts of a processor, with another one for videos."""

    def __init__(self, loaders: Any) -> None:
        self.loaders = loaders

    def __getitem__(self, name: str) -> Any:
        return MissingVideoProcessor if name == VIDEO else self.loaders[name]

    def keys(self) -> Any:
        """Names of the parts."""
        return self.loaders.keys()

    def __contains__(self, name: object) -> bool:
        return name in self.loaders


def load_processor(path: str) -> Any:
    """Load the processor of a multimodal model; its tokenizer gets its chat template.

    Raises:
        ConfigError: It does not load.
    """
    try:
        with without_video_processors():
            processor = AutoProcessor.from_pretrained(path)
    except LOAD_ERRORS as error:
        raise ConfigError(
            f"model: {path!r} has no processor that loads: {first_line(error)}"
        ) from error
    if template := getattr(processor, "chat_template", None):
        processor.tokenizer.chat_template = template
    return processor


@dataclass(frozen=True)
class ProcessorFiles:
    """A processor that is exported with its model.

    Args:
        processor: The processor.
        source: Folder or hub name that it was loaded from.
    """

    processor: Any
    source: str

    def save_pretrained(self, folder: Path) -> None:
        """Write the processor to a folder, with the settings for videos that its source has."""
        self.processor.save_pretrained(folder)
        if not isinstance(getattr(self.processor, VIDEO, None), MissingVideoProcessor):
            return
        file = folder / PROCESSOR_FILE
        settings = json.loads(file.read_text())
        del settings[VIDEO]
        if (original := self._source_file(PROCESSOR_FILE)) is not None:
            written = json.loads(original.read_text())
            settings |= {name: x for name, x in written.items() if name == VIDEO}
        file.write_text(json.dumps(settings, indent=2))
        if (original := self._source_file(VIDEO_FILE)) is not None:
            shutil.copyfile(original, folder / VIDEO_FILE)

    def _source_file(self, name: str) -> Path | None:
        path = cached_file(
            self.source,
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return Path(path) if path else None
