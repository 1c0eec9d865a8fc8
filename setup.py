"""Puts the workflow into the wheel, from where `neuroute init` copies it; pyproject.toml has the rest."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "src"))
from neuroute.core.source import PARTS


class BuildWithWorkflow(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the checkout has it
            return
        root = Path(__file__).parent
        for part in PARTS:
            target = Path(self.build_lib, "neuroute", "checkout", part)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (root / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(root / part, target, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy(root / part, target)


setup(cmdclass={"build_py": BuildWithWorkflow})
