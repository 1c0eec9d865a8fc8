"""`neuroute` on the command line, within this process."""

from typer.testing import CliRunner

from neuroute.pipeline.cli import app


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command; what it does not catch is raised."""
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.output


def done(*arguments: object) -> str:
    """What a command says that goes well."""
    code, output = call(*arguments)
    assert code == 0, (arguments, output)
    return output


def refused(*arguments: object) -> str:
    """The one line of a command that is refused."""
    code, output = call(*arguments)
    assert (code, len(output.strip().splitlines())) == (2, 1), (arguments, output)
    return output
