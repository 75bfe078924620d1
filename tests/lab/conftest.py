"""What tests of the lab need of the machine."""

from __future__ import annotations

import pytest

from lab.cli import CannotRun
from lab.null_server import program


@pytest.fixture(scope="session")
def null_server_can_be_built() -> None:
    """Skip what needs the null server where it cannot be built, and say why."""
    try:
        program()
    except CannotRun as reason:
        pytest.skip(str(reason))
