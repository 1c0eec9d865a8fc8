"""Targets that stand behind an option's values: `--resources gpu=1 all`, `--configfile mine.yaml results/table1.csv`.

Snakemake's options of many values take all words up to the next option, and then fail on a target that is no value.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from snakemake.common import SNAKEFILE_CHOICES
from snakemake.common.configfile import load_configfile
from snakemake.settings.enums import Quietness, RerunTrigger
from snakemake.settings.types import DeploymentMethod


def is_for_neuroute(command: list[str]) -> bool:
    """Whether this is a user's call of Snakemake, not one of its own, on the Snakefile of neuroute."""
    program = Path(command[0])
    is_snakemake = program.stem == "snakemake" or program.parts[-2:] == ("snakemake", "__main__.py")
    return is_snakemake and "--mode" not in command and "--" not in command and _is_ours(_snakefile(command))


def _snakefile(command: list[str]) -> Path | None:
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word in ("-s", "--snakefile"):
            return Path(following)
        if word.startswith("--snakefile="):
            return Path(word.partition("=")[2])
    return next((path for path in SNAKEFILE_CHOICES if path.exists()), None)


def _is_ours(snakefile: Path | None) -> bool:
    try:
        return snakefile is not None and re.search(r"^import neuroute$", snakefile.read_text(), re.M) is not None
    except (OSError, UnicodeDecodeError):
        return False


def separate_targets(arguments: list[str]) -> list[str]:
    """Move words that no option takes as its value to where targets stand, in front; others stay as they are.

    An option that is given twice keeps all: Snakemake reads its last values alone.
    """
    options = Counter(OPTIONS[word] for word in arguments if word in OPTIONS)
    rest: list[str] = []
    targets: list[str] = []
    following = list(arguments)
    while following:
        option, *following = following
        rest.append(option)
        if option in OPTIONS and options[OPTIONS[option]] == 1:
            words = _words(following)
            values = list(takewhile(OPTIONS[option].takes, words))
            if not values and OPTIONS[option].needs_one:
                values = words[:1]  # Snakemake says what is wrong with it
            rest += values
            targets += words[len(values) :]
            following = following[len(words) :]
    first = len(_words(rest))
    return rest[:first] + targets + rest[first:]


def _words(arguments: list[str]) -> list[str]:
    """Those up to the next option."""
    return list(takewhile(lambda word: not word.startswith("-"), arguments))


def _is_pair(word: str) -> bool:
    return "=" in word or word.startswith("base64//")


def _is_config(word: str) -> bool:
    """Whether a file holds settings, or its name says so; a result of neuroute says where it was measured."""
    if word.endswith((".yaml", ".yml")):
        return True
    try:
        return "measured_on" not in load_configfile(word)
    except Exception:  # whatever makes Snakemake refuse it
        return False


@dataclass(frozen=True)
class Option:
    """One that takes many values: by all its names, and which words are values of it."""

    names: str
    takes: Callable[[str], bool]
    needs_one: bool = True


OPTIONS = {
    name: option
    for option in (
        Option("--resources --res", _is_pair),
        Option("--set-threads", _is_pair),
        Option("--set-resources", _is_pair),
        Option("--set-scatter", _is_pair),
        Option("--set-resource-scopes", _is_pair),
        Option("--default-resources --default-res", _is_pair, needs_one=False),
        Option("--config -C", _is_pair, needs_one=False),
        Option("--groups", _is_pair),
        Option("--group-components", _is_pair),
        Option("--consider-ancient", _is_pair),
        Option("--configfile --configfiles", _is_config),
        Option("--quiet -q", Quietness.choices().__contains__, needs_one=False),
        Option("--rerun-triggers", RerunTrigger.choices().__contains__),
        Option(
            "--software-deployment-method --deployment-method --deployment --sdm",
            DeploymentMethod.choices().__contains__,
        ),
    )
    for name in option.names.split()
}
