"""Which figures there are, and what makes each of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ..analysis.mean_study import OnStep
from . import (
    binomial_slack,
    cpsgd_fig1,
    dprec_accounting,
    dprec_bits,
    dprec_communication,
    dprec_mean,
    mvu_fig1,
    mvu_fig2,
    mvu_fig3,
    mvu_fig5,
    secure_sum_bits,
)

# By name: writes the figure's svg, pdf, png and csv files to a folder, from a root seed, and tells how far it is if it takes long.
FIGURES: Mapping[str, Callable[[Path, int, OnStep], None]] = MappingProxyType(
    {
        mvu_fig1.NAME: lambda output, seed, _: mvu_fig1.mvu_fig1(output, seed),
        mvu_fig2.NAME: lambda output, seed, _: mvu_fig2.mvu_fig2(output, seed),
        mvu_fig3.NAME: mvu_fig3.mvu_fig3,
        mvu_fig5.NAME: lambda output, seed, _: mvu_fig5.mvu_fig5(output, seed),
        cpsgd_fig1.NAME: lambda output, seed, _: cpsgd_fig1.cpsgd_fig1(output, seed),
        binomial_slack.NAME: lambda output, seed, _: binomial_slack.draw_binomial_slack(output, seed),
        secure_sum_bits.NAME: secure_sum_bits.secure_sum_bits,
        dprec_accounting.NAME: dprec_accounting.draw_dprec_accounting,
        dprec_mean.NAME: dprec_mean.draw_dprec_mean,
        dprec_communication.NAME: dprec_communication.draw_dprec_communication,
        dprec_bits.NAME: dprec_bits.draw_dprec_bits,
    }
)
