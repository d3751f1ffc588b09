"""Plans of a few mechanisms, where the others have no part in what is tested."""

from collections.abc import Callable

import pytest

from quietbits.analysis.catalogue import registry
from quietbits.analysis.catalogue.plug_ins import Registry
from quietbits.design.contracts.registry import Entry


@pytest.fixture
def plan_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what lets plans be of some mechanisms alone, each an entry or the name of one."""
    every = registry.REGISTRY

    def restrict(*mechanisms: str | Entry) -> None:
        entries = [every[mechanism] if isinstance(mechanism, str) else mechanism for mechanism in mechanisms]
        chosen = Registry({entry.name: entry for entry in entries})
        monkeypatch.setattr("quietbits.analysis.planner.plan.REGISTRY", chosen)
        monkeypatch.setattr(registry, "REGISTRY", chosen)

    return restrict
