"""quietbits: design, certify and compare mechanisms that make a client's message both private and small.

The names in `__init__.pyi` are the public face; everything else is found in the module that is named for it, such as
`quietbits.solvers.bounds.staircase`.
A name is imported when it is first used, so that `quietbits --help` answers before numpy is loaded.

Examples
--------
>>> import quietbits
>>> table = quietbits.design_mvu(epsilon=3.0, bits_in=2, bits_out=2)
>>> str(table.guarantee), table.certificate.max_bias
('epsilon = 3, replace-one adjacency, local trust model', 0.0)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
