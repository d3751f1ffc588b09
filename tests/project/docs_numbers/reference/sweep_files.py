"""Table of docs/reference/sweep-files.md."""

import quietbits
from quietbits.analysis.sweeps.task import design_options


def mechanisms() -> list[list[str]]:
    """Return each mechanism's name, trust model, and options with their choices."""
    return [[f"`{name}`", entry.trust_model, ", ".join(map(shown, design_options(entry)))] for name, entry in quietbits.REGISTRY.items()]


def shown(option: quietbits.Option) -> str:
    """Return an option's name, with its choices."""
    choices = ", ".join(f'`"{choice}"`' for choice in option.choices or ())
    return f"`{option.name}`" + (f" ({choices})" if choices else "")
