import io

import numpy as np
import torch
from PIL import Image

from grupo.storage.png import encode_png


def test_png_is_exact():
    image = torch.arange(3 * 4 * 5, dtype=torch.uint8).reshape(3, 4, 5)
    with Image.open(io.BytesIO(encode_png(image))) as decoded:
        assert (decoded.mode, decoded.size) == ("RGB", (5, 4))  # width, height
        assert np.array_equal(np.asarray(decoded), image.permute(1, 2, 0).numpy())
