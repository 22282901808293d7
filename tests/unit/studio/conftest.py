"""What several tests of the studio begin with."""

from __future__ import annotations

import pytest

from engine.store import ProjectRow
from studio.services.service import Service
from tests.bases import EN_ZH


@pytest.fixture
def project(service: Service) -> ProjectRow:
    """A project from English to Chinese, without samples."""
    return service.create_project("Rain", "en", "zh", str(EN_ZH))
