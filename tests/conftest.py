"""Shared by the tests: reference values that were computed outside the library."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

# Fixed examples: a test that fails here fails everywhere.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def reference():
    """High-precision values of profiles and calibrations."""
    return json.loads((DATA / "reference.json").read_text())
