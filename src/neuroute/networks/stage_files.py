"""The ends of a run's stages in one file, `stages.zip`, which is empty for a training without stages.

`<stage>.safetensors` are checkpoints of all stages but the last, whose weights are the model's, and
`<stage>.moments.safetensors` the optimizer's moments at the end of each; the last stage is called `model`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.core.private import scratch_folder

LAST = "model"


def pack_stages(path: Path, files: Mapping[str, bytes]) -> None:
    """Write them as one file; equal ends give equal bytes."""

    def write(stream: Any) -> None:
        with ZipFile(stream, "w") as packed:
            for name, data in files.items():
                packed.writestr(ZipInfo(name), data)  # of no date

    write_whole(path, write)


@contextmanager
def unpacked_stages(path: Path) -> Iterator[Path]:
    """A folder with the ends of a run's stages, while the block runs.  Raises NeurouteError for a damaged file."""
    with scratch_folder("stages-") as folder:
        try:
            with ZipFile(path) as packed:
                packed.extractall(folder)
        except (OSError, BadZipFile, NotImplementedError) as error:
            raise NeurouteError(
                f"{path}: cannot be read ({error}); delete it and train its run anew: `neuroute train <run>`"
            ) from None
        yield folder
