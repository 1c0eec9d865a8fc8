"""Figures without their PDFs and PNGs, most of the time of writing them, where a test looks at neither."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

real = Figure.savefig


@contextmanager
def svg_alone() -> Iterator[None]:
    """Write a PNG of one pixel, and no PDF but its name."""

    def save(figure: Figure, file: IO[bytes], *, format: str, **more: Any) -> None:
        if format == "svg":
            real(figure, file, format=format, **more)
        elif format == "png":
            Image.new("L", (1, 1)).save(file, "PNG")
        else:
            file.write(b"%PDF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save)
        yield


@contextmanager
def all_formats() -> Iterator[None]:
    """Write them all, within `svg_alone`, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", real)
        yield
