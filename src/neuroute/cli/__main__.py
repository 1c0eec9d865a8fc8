"""`python -m neuroute.cli`, which is what the workflow calls."""

from neuroute.cli import app

if __name__ == "__main__":
    app()
