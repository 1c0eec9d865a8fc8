"""What holds of every artifact that is rendered."""

from collections.abc import Callable, Iterable
from pathlib import Path

from pictures import pictures

from neuroute.rendering.render import render
from neuroute.rendering.study import Study

Look = Callable[[str, Path], Study]  # (artifact, work folder) -> what the artifact sees of it


def written_twice(look: Look, name: str, work: Path, folder: Path, formats: Iterable[str]) -> list[Path]:
    """The files of every format, which come out the same again."""
    with pictures():
        once, again = (render(look(name, work), folder / each / name) for each in ("once", "again"))
    assert [path.suffix[1:] for path in once] == list(formats)
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    return once
