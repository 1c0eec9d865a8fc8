"""`python -m neuroute`: the command line where no `neuroute` is on the PATH, and of the jobs of the workflow."""

from neuroute.pipeline.cli import app

if __name__ == "__main__":
    app(prog_name="neuroute")
