"""Targets behind the values of an option, as README has them: `--resources gpu=1 all`, `--configfile f.yaml all`.

These options take all words up to the next option, and then Snakemake fails on a target that is no value.
"""

from pathlib import Path

PAIRS, FILES = ("--resources", "--config"), ("--configfile",)
ELSEWHERE = {"--mode", "-s", "--snakefile"}  # a call of Snakemake's own, another Snakefile


def is_for_neuroute(command: list[str]) -> bool:
    """Whether a user calls Snakemake on the Snakefile of neuroute in this folder."""
    program, top, workflow = Path(command[0]), Path("Snakefile"), Path("workflow/Snakefile")
    is_snakemake = program.stem == "snakemake" or program.parts[-2:] == ("snakemake", "__main__.py")
    if not is_snakemake or ELSEWHERE.intersection(command) or not (top.is_file() and workflow.is_file()):
        return False
    includes = b'\ninclude: "workflow/Snakefile"' in top.read_bytes()
    return includes and b"\nfrom neuroute.pipeline.dag.rules import" in workflow.read_bytes()


def separate_targets(arguments: list[str]) -> list[str]:
    """Move words that are no values of the option before them to the front, where targets stand."""
    rest: list[str] = []
    targets: list[str] = []
    option, values = "", 0
    for word in arguments:
        if word.startswith("-"):
            option, values = word, 0
        elif (option in PAIRS and values and "=" not in word) or (option in FILES and values and not _is_config(word)):
            targets.append(word)
            continue
        else:
            values += 1
        rest.append(word)
    return [*targets, *rest]


def _is_config(word: str) -> bool:
    return word.endswith((".yaml", ".yml")) or (Path(word).suffix in (".json", "") and Path(word).is_file())
