"""Plans of a few mechanisms, for tests that do not need other mechanisms."""

from collections.abc import Callable

import pytest

from quietbits.analysis.catalogue import registry
from quietbits.analysis.catalogue.plug_ins import Registry
from quietbits.design.contracts.registry import Entry


@pytest.fixture
def plan_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that limits plans to given mechanisms, each an entry or its name."""
    every = registry.REGISTRY

    def restrict(*mechanisms: str | Entry) -> None:
        entries = [every[mechanism] if isinstance(mechanism, str) else mechanism for mechanism in mechanisms]
        chosen = Registry({entry.name: entry for entry in entries})
        monkeypatch.setattr("quietbits.analysis.planner.plan.REGISTRY", chosen)
        monkeypatch.setattr(registry, "REGISTRY", chosen)

    return restrict
