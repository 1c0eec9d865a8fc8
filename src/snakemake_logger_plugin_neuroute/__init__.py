"""Snakemake's logger `neuroute`, which profiles/default chooses: one line for a whole run instead of a page a job.

Snakemake imports the loggers that are installed before it reads its command line.  So here is also where targets that
one of its options would take for a value of its own are set apart: see `command_line`.
"""

import sys
from argparse import ArgumentParser

from neuroute.pipeline.dag.engine import refuse, say_in_one_line
from snakemake_logger_plugin_neuroute.command_line import is_for_neuroute, separate_targets
from snakemake_logger_plugin_neuroute.progress import LogHandler

__all__ = ["LogHandler"]

if is_for_neuroute(sys.argv):
    sys.argv[1:] = separate_targets(sys.argv[1:])
    ArgumentParser.error = refuse  # type: ignore[assignment, method-assign]
    sys.excepthook = say_in_one_line
