"""
Training: accuracy under a budget
=================================

A federation trains a classifier of handwritten digits. Updates are private, and their total privacy loss is proven.
"""

# %%
# A training is a document, as ``quietbits train`` reads it from a TOML file. Mechanisms that are compared share everything else.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import quietbits

document = {
    "clients": 1442,
    "clients_per_round": 600,
    "rounds": 15,
    "server": "momentum",
    "delta": 1e-5,
    "adjacency": "add-or-remove-one",
    "mechanism": [
        {"name": "none"},
        {"name": "distributed-skellam", "epsilon": 8.0, "bits": 12},
        {"name": "distributed-skellam", "epsilon": 2.0, "bits": 12},
    ],
}
spec = quietbits.parse_training(document)

# %%
# The data are scikit-learn's digits, each image with a client of its own. Rounds are accounted for together.

with tempfile.TemporaryDirectory() as folder:
    results = pd.read_parquet(quietbits.run_training(spec, Path(folder)))
summary = quietbits.summarise_training(results)
print(summary[["mechanism", "epsilon", "accuracy", "megabytes_up"]].to_string(index=False))

# %%
# The figure shows the accuracy on test images after each round.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for _, run in results.groupby("run"):
    proven = run["epsilon"].iloc[-1]
    label = (
        "no privacy"
        if run["mechanism"].iloc[0] == "none"
        else f"epsilon {proven:.2g} after all rounds"
    )
    axes.plot(run["round"], run["accuracy"], ".-", label=label)
axes.set(xlabel="round", ylabel="accuracy")
axes.legend()
plt.show()
