"""`python -m neuroute`: the command line where no `neuroute` is on the PATH."""

from neuroute.cli import app

if __name__ == "__main__":
    app(prog_name="neuroute")
