"""Check that a command refuses its arguments."""

from collections.abc import Sequence

import pytest

from tokaido_env.__main__ import main


def check_refused(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], message: str
) -> None:
    """Check that a command exits with status 1 and one line of error that contains a message."""
    assert main(list(arguments)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{arguments[0]}: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
