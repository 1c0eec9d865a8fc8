"""Build a wheel of ml4co-kit without its dependencies: only the extension of Concorde within it is used.

They would hold PyVRP back, and are many.  A conda file lists what pip installs, and cannot say `--no-deps`.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PUBLISHED = "ml4co-kit==0.5.7"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Write the wheel, as PEP 517 asks for, and return its name.  Fails where none is published for the machine."""
    with tempfile.TemporaryDirectory() as folder:
        download = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, PUBLISHED]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(Path(wheel_directory, wheel.name), "w") as target:
            for entry in source.infolist():
                lines = source.read(entry).splitlines(keepends=True)
                if entry.filename.endswith(".dist-info/METADATA"):
                    lines = [line for line in lines if not line.startswith(b"Requires-Dist:")]
                if entry.filename.endswith(".dist-info/RECORD"):
                    lines = [b"%s,,\n" % line.split(b",")[0] if b"/METADATA," in line else line for line in lines]
                target.writestr(entry, b"".join(lines), zipfile.ZIP_DEFLATED)
        return wheel.name
