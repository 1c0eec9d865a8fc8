"""`neuroute` on the command line, within this process."""

from typer.testing import CliRunner

from neuroute.cli import app


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command; what it does not catch is raised."""
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.output


def done(*arguments: object) -> str:
    """What a command says that goes well."""
    code, output = call(*arguments)
    assert code == 0, (arguments, output)
    return output
