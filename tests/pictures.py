"""Figures that are laid out and not written, most of the time of drawing them, where a test looks at no picture."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt" viewBox="0 0 1 1"></svg>\n'
real = Figure.savefig


@contextmanager
def no_pictures() -> Iterator[None]:
    """Write a pixel instead; `save_figure` has laid the figure out before, so that what cannot be drawn still fails."""

    def save(_: Figure, file: IO[bytes], *, format: str, **__: Any) -> None:
        if format == "png":
            Image.new("L", (1, 1)).save(file, "PNG")
        else:
            file.write(SVG if format == "svg" else b"%PDF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save)
        yield


@contextmanager
def pictures() -> Iterator[None]:
    """Write them, within `no_pictures`, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", real)
        yield
