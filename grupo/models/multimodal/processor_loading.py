"""Processors of multimodal models: loading, and export with the model."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoProcessor
from transformers.utils.hub import cached_file

from grupo.models.loading import LOAD_ERRORS, first_line
from grupo.models.model_references import check_references
from grupo.models.multimodal.missing_video import (
    VIDEO,
    MissingVideoProcessor,
    without_video_processors,
)
from grupo.util.errors import ConfigError

PROCESSOR_FILE = "processor_config.json"
VIDEO_FILE = "video_preprocessor_config.json"  # of models from before processors had one file


def load_processor(path: str) -> Any:
    """Load the processor of a multimodal model; its tokenizer gets its chat template.

    Raises:
        ConfigError: It does not load.
    """
    check_references(path)
    try:
        with without_video_processors():
            processor = AutoProcessor.from_pretrained(path, trust_remote_code=False)
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
