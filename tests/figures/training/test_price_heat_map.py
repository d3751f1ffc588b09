"""Bits per parameter in the paper's settings, to the printed digits."""

import math

import pytest

from quietbits.figures.training.price_heat_map import SETTINGS, CompressionSetting, compression_settings, modular_clip_probability


@pytest.mark.parametrize(
    ("rate", "bits", "expected"),
    [(1, 10, 10), (5, 12, 2.4), (10, 12, 1.2), (50, 12, 0.24), (60, 16, 0.27), (20, 14, 0.7)],
)
def test_bits_over_rate(rate: float, bits: int, expected: float) -> None:
    (result,) = {setting.bits_per_parameter for setting in SETTINGS if (setting.rate, setting.bits) == (rate, bits)}
    assert round(result, 2) == expected


def test_a_modulus_of_four_deviations() -> None:
    assert float(f"{modular_clip_probability():.2e}") == 6.33e-5
    assert modular_clip_probability(2.0) == pytest.approx(math.erfc(2 / math.sqrt(2)), rel=1e-12)
    assert modular_clip_probability(0.0) == 1.0


def test_the_table_is_tidy() -> None:
    frame = compression_settings()
    assert len(frame) == len(SETTINGS)
    assert frame["bits_per_parameter"].tolist() == [setting.bits / setting.rate for setting in SETTINGS]
    # Compression costs accuracy at every noise in Table 1.
    for _, group in frame[frame["source"] == "Table 1"].groupby("noise_multiplier"):
        assert group.sort_values("rate")["accuracy"].is_monotonic_decreasing


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rate must be a number from 1 to .*, got 0\.5"):
        CompressionSetting("Table 1", "any", 0.5, 10)
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 62, got 0"):
        CompressionSetting("Table 1", "any", 1, 0)
    with pytest.raises(ValueError, match="deviations must be a number from 0 to 100"):
        modular_clip_probability(-1.0)
