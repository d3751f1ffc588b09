"""Design, certify and compare mechanisms that make client messages private and small.

`dir(quietbits)` lists the public names; each has a help page, such as `help(quietbits.plan)`. Starting points:

- which mechanism to use: `Task`, `plan`, `check_plan`, and `REGISTRY` for all that there are; `load_plan_grid`, `plan_grid` for many tasks;
- one mechanism: `build_mechanism`, then its `encode`, `decode`, `guarantee`; `account` and `calibrate` for its privacy;
- tables: `design_mvu`, `calibrate_vector_table`, `write_table`, `read_table`, `verify_file`, `export_table`;
- clients in other languages: `deploy`, `deploy_table`, `write_deployment`, `verify_deployment`, `load_deployment`; `encode_inputs`,
  `decode_messages`;
- tables in bulk: `load_grid`, `design_tables`, `verify_folder`, `write_explorer`;
- what it costs: `simulate_mean`, `repeat_mean`, `audit`, `load_sweep`, `run_sweep`, `study_mean`, `write_report`;
- what it costs a model: `load_training`, `run_training`, `summarise_training`;
- mathematics: `rate_distortion`, `solve_lasso`, `CountMeanSketch`, `sample_discrete_gaussian`, `secure_words`, `SecureSum`.

The other functions are in modules named after them, such as `quietbits.solvers.bounds.staircase`. Names are imported at their first use, so
that `quietbits --help` answers before numpy is loaded.

Examples
--------
>>> import quietbits
>>> table = quietbits.design_mvu(epsilon=3.0, bits_in=2, bits_out=2)
>>> str(table.guarantee), table.certificate.max_bias
('epsilon = 3, replace-one adjacency, local trust model', 0.0)
"""

import lazy_loader

from .extras import loadable

# The module has no `__all__`: with it, `help(quietbits)` would print the help of every public name, nine thousand lines.
__getattr__, _all_names, _ = lazy_loader.attach_stub(__name__, __file__)


def __dir__() -> list[str]:
    """Return the public names that the installed extras can load."""
    return loadable(_all_names(), __getattr__)
