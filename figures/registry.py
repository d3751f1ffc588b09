"""Which figures there are, and what makes each of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ..progress import OnStep
from .beyond import secure_sum_bits
from .cpsgd import binomial_slack
from .cpsgd import fig1 as cpsgd_fig1
from .dp_rec import accounting as dprec_accounting
from .dp_rec import bits as dprec_bits
from .dp_rec import communication as dprec_communication
from .dp_rec import mean as dprec_mean
from .mvu import fig1 as mvu_fig1
from .mvu import fig2 as mvu_fig2
from .mvu import fig3 as mvu_fig3
from .mvu import fig5 as mvu_fig5

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
